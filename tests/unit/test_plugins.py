"""Plug-ins by entry point, data files by name."""

import pytest

from tuner.errors import UsageError
from tuner.plugins import entry_points_of, installed_versions, oldest_versions, plugin, space_file, too_old


def test_backends_are_found_by_entry_point():
    """Built-in backends use the same door as foreign ones; names are sorted."""
    names = list(entry_points_of("tuner.backends"))
    assert names == sorted({*names, "ctranslate2", "fake", "onnxruntime", "openvino", "pytorch"})


def test_a_group_without_plugins_is_empty():
    """An unknown group is no error."""
    assert entry_points_of("tuner.nothing") == {}


def test_plugin_is_made_without_arguments():
    """The entry point names a class; the plug-in knows its own name."""
    assert plugin("tuner.backends", "fake").name == "fake"


def test_unknown_plugin_names_the_known_ones():
    """The error lists what is installed."""
    with pytest.raises(UsageError, match=r"no plug-in 'fakee' .* fake, "):
        plugin("tuner.backends", "fakee")


def test_versions_of_installed_distributions():
    """Versions come from metadata."""
    assert set(installed_versions("numpy", "pydantic")) == {"numpy", "pydantic"}


def test_versions_of_an_absent_distribution():
    """One absent distribution makes the engine absent."""
    assert installed_versions("numpy", "no-such-distribution-here") is None
    assert installed_versions("") is None


def test_oldest_versions_are_those_that_pip_asks_for():
    """Of what is always installed and of the extras."""
    assert {"onnxruntime", "torch", "openvino"} <= set(oldest_versions())


@pytest.mark.parametrize(
    ("version", "is_old"),
    [("1.9.1", True), ("1.23.2", True), ("1.24", False), ("1.24.0", False), ("1.24.0rc1", False), ("2.0+cpu", False)],
)
def test_old_versions(version, is_old):
    """Numbers are compared as numbers; the way out is named."""
    found = too_old({"engine": version, "other": "0"}, {"engine": "1.24", "absent": "9"})
    assert found == (f"engine {version} is too old: pip install 'engine>=1.24'" if is_old else None)


def test_space_files_are_found():
    """A search-space file is read by its name, wherever the package is installed."""
    assert 'schema = "tuner.space/1"' in space_file("process.toml").read_text()
