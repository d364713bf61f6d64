"""Sizes, names and lists that must agree with each other."""

import ast
import importlib
import statistics
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import tuner
from tuner.cli.app import COMMANDS, build_app
from tuner.errors import TunerError

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted((ROOT / "tuner").rglob("*.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
GROUPS = ("tuner.backends", "tuner.steps")


def lines(path):
    """Return the number of lines of a file."""
    return len(path.read_text().splitlines())


def options_of(command):
    """Return the long option names of a command, as the command line knows them."""
    arguments = build_app()[command].assemble_argument_collection()
    names = {name for argument in arguments for name in argument.names if name.startswith("--")}
    return {name for name in names if not name.startswith(("--no-", "--empty-"))}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_is_long(path):
    """No module has more than 300 lines."""
    assert lines(path) <= 300


def test_files_are_small():
    """The median module that is more than a docstring has about 110 lines."""
    assert statistics.median(lines(path) for path in MODULES if lines(path) > 10) <= 120


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_say_their_duty(path):
    """Every module begins with a docstring."""
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_exported_names_exist():
    """Every public name can be had."""
    assert [name for name in tuner.__all__ if getattr(tuner, name, None) is None] == []


def test_exported_names_are_listed():
    """What is exported lazily and what is declared are the same names, sorted."""
    assert tuner.__all__ == sorted(tuner.__all__)


def test_unknown_name_is_an_attribute_error():
    """A name that the package does not have is refused as usual."""
    with pytest.raises(AttributeError, match="no attribute 'tunes'"):
        _ = tuner.tunes


def test_no_submodule_shadows_a_public_name():
    """Importing a submodule never replaces a public function."""
    submodules = {path.stem for path in (ROOT / "tuner").iterdir() if path.suffix == ".py" or path.is_dir()}
    assert submodules & set(tuner.__all__) == set()


def test_public_functions_survive_their_packages():
    """After all of the package is imported, `tuner.tune` and `tuner.load` are still functions."""
    for path in MODULES:
        if "worker" not in path.parts and path.stem != "__main__":
            importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    assert (callable(tuner.tune), callable(tuner.load)) == (True, True)


def test_exported_errors_are_errors_of_ours():
    """Every exported error is a TunerError, so that one except clause is enough."""
    found = [getattr(tuner, name) for name in tuner.__all__]
    errors = [one for one in found if isinstance(one, type) and issubclass(one, Exception)]
    assert [one for one in errors if not issubclass(one, TunerError)] == []


@pytest.mark.parametrize("option", sorted(options_of("tune")))
def test_readme_names_every_option(option):
    """README names each option of `autotune tune`."""
    assert f"`{option}`" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_readme_shows_every_command(command):
    """README shows each command."""
    text = (ROOT / "README.md").read_text()
    assert f"autotune {command}" in text or f"`{command}`" in text


@pytest.mark.parametrize("group", GROUPS)
def test_entry_points_are_the_modules(group):
    """Every backend and step module has one entry point, and every entry point a module."""
    room = ROOT / group.replace(".", "/")
    modules = {path.stem for path in room.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    assert set(PROJECT["entry-points"][group]) == modules - {"__init__", "base"}


@pytest.mark.parametrize("group", GROUPS)
def test_entry_points_can_be_loaded(group):
    """The class that an entry point names has that name."""
    for name, target in PROJECT["entry-points"][group].items():
        module, _, attribute = target.partition(":")
        assert getattr(importlib.import_module(module), attribute).name == name


def test_every_space_belongs_to_a_plugin():
    """A TOML in search_spaces describes a backend, a step, or the process; each of them has one."""
    files = {path.stem for path in (ROOT / "search_spaces").glob("*.toml")}
    assert files == {name for group in GROUPS for name in PROJECT["entry-points"][group]} | {"process"}


@pytest.mark.slow
def test_wheel_is_complete(tmp_path):
    """The wheel holds every module, every search space and the texts: it works from any directory."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)], check=True
    )
    [wheel] = tmp_path.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {str(path.relative_to(ROOT)) for path in MODULES}
    expected |= {f"tuner/search_spaces/{path.name}" for path in (ROOT / "search_spaces").glob("*.toml")}
    expected |= {str(path.relative_to(ROOT)) for path in (ROOT / "tuner").rglob("*.txt")}
    assert expected - names == set()
