"""What must be in force before a program starts."""

import os

import pytest

from tuner.errors import ProfileMismatch, UsageError
from tuner.hardware import libraries
from tuner.hardware.detection import detect
from tuner.loading.launching import came_too_late, launch_settings
from tuner.records.config import Config, Placement, ProcessSettings


@pytest.fixture(scope="module")
def host():
    """Return this host."""
    return detect()


@pytest.fixture
def process(profile_document, profile):
    """Return a function that makes a profile whose best config has these process settings."""

    def make(**settings):
        best = profile_document()["best"]
        best["config"]["process"] = ProcessSettings(**settings).model_dump(mode="json")
        return profile(best=best)

    return make


def config(**settings):
    """Return a config with process settings."""
    return Config(backend="fake", process=ProcessSettings(**settings))


def test_own_mask_and_environment(process, host):
    """Without settings, mask and environment stay as they are."""
    settings = launch_settings(process(), host, {"PATH": "/bin", "MY": "x"})
    assert (settings.cpus, settings.environment) == (None, {"PATH": "/bin", "MY": "x"})


def test_mask_is_within_the_allowed_cpus(process, host):
    """A placement becomes CPU ids of this host."""
    settings = launch_settings(process(placement=Placement(policy="spread", n_cpus=1)), host, {})
    assert set(settings.cpus) <= set(host.allowed_cpus)


def test_mask_has_the_size_asked_for(process, host):
    """As many CPUs as the config says."""
    assert len(launch_settings(process(placement=Placement(policy="spread", n_cpus=1)), host, {}).cpus) == 1


def test_environment_of_the_config_wins(process, host):
    """The user's thread-pool variables give way, other variables stay."""
    before = {"OMP_NUM_THREADS": "64", "KMP_AFFINITY": "compact", "MY": "x"}
    settings = launch_settings(process(env={"OMP_NUM_THREADS": "2"}), host, before)
    assert settings.environment == {"OMP_NUM_THREADS": "2", "MY": "x"}


@pytest.mark.parametrize("name", ["/tmp/evil.so", "../evil", "nosuchlibrary", "jemalloc/../../evil"])  # noqa: S108
def test_allocator_is_a_name(process, host, name):
    """An allocator that is not a known library of the system is refused, a path above all."""
    with pytest.raises(ProfileMismatch, match=r"is not installed in a system library folder: .*, or tune again"):
        launch_settings(process(allocator=name), host, {})


def test_variable_that_is_not_allowed(process, host):
    """A variable that is not listed never reaches a program."""
    with pytest.raises(UsageError, match="LD_PRELOAD"):
        launch_settings(process(env={"LD_PRELOAD": "evil.so"}), host, {})


def test_nothing_is_too_late(host):
    """A config without process settings is always in force."""
    assert came_too_late(config(), host, {}, "") == {}


def test_mask_that_is_not_set(host):
    """A mask of another size than this process has came too late."""
    place = Placement(policy="spread", n_cpus=1)
    expected = {"process.placement"} if len(os.sched_getaffinity(0)) > 1 else set()
    assert set(came_too_late(config(placement=place), host, {}, "")) == expected


@pytest.mark.parametrize(
    ("environ", "late"), [({}, True), ({"OMP_NUM_THREADS": "4"}, True), ({"OMP_NUM_THREADS": "2"}, False)]
)
def test_variable_that_is_not_set(host, environ, late):
    """A variable counts only with its value."""
    found = came_too_late(config(env={"OMP_NUM_THREADS": "2"}), host, environ, "")
    assert ("process.env.OMP_NUM_THREADS" in found) is late


def test_preload_counts_only_if_mapped(host):
    """A preload variable is no proof: the library must be in the maps of the process (case C44)."""
    environ = {"LD_PRELOAD": "/usr/lib/libjemalloc.so.2"}
    assert set(came_too_late(config(allocator="jemalloc"), host, environ, "")) == {"process.allocator"}


@pytest.mark.parametrize(
    ("allocator", "mapped", "late"),
    [
        ("jemalloc", "/usr/lib/libjemalloc.so.2", False),
        ("tcmalloc", "/usr/lib/libtcmalloc.so.4", False),
        ("tcmalloc", "/usr/lib/libtcmalloc_minimal.so.4", True),
    ],
)
def test_mapped_allocator(host, allocator, mapped, late):
    """A mapped library of that very name is in force."""
    text = f"7f00-7f01 r-xp 00000000 08:01 1 {mapped}\n"
    assert ("process.allocator" in came_too_late(config(allocator=allocator), host, {}, text)) is late


@pytest.mark.parametrize("name", [name for name in libraries.OPENMP_RUNTIMES if libraries.find(name)] or ["gomp"])
def test_mapped_runtime(host, name):
    """A runtime is in force under whatever file name its name stands for."""
    path = libraries.find(name) or "/usr/lib/libgomp.so.1"
    assert came_too_late(config(openmp_runtime=name), host, {}, f"7f00-7f01 r-xp 0 08:01 1 {path}\n") == {}
