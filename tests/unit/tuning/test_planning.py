"""What a run works on: traffic, baseline, limits, and the key of its study."""

import json

import pytest

from tuner.errors import HostError, UsageError
from tuner.hardware.detection import detect
from tuner.models.digests import digest_file
from tuner.records.config import Config
from tuner.records.model import ModelFacts
from tuner.tuning.planning import baseline_config, make_plan, workload_of
from tuner.tuning.request import TuneRequest


@pytest.fixture(scope="module")
def host():
    """Return this host."""
    return detect()


@pytest.fixture
def plan(tiny_onnx, tmp_path, host):
    """Return a function that plans a run of the tiny model with the fake backend."""

    def make(**options):
        request = TuneRequest(**{"model": str(tiny_onnx), "backends": ("fake", "onnxruntime"), **options})
        return make_plan(request, host, tmp_path)

    return make


def test_fixed_allocator_that_is_not_installed(tiny_onnx, tmp_path, host):
    """No trial could have it: refused before any starts, with the package to install."""
    request = TuneRequest(model=str(tiny_onnx), backends=("fake",), fix=("process.allocator=jemalloc",))
    with pytest.raises(HostError, match=r"--fix process\.allocator=jemalloc: .*apt-get install libjemalloc2"):
        make_plan(request, host.model_copy(update={"allocators": ()}), tmp_path)


def test_fixed_allocator_that_is_installed(tiny_onnx, tmp_path, host):
    """It is the only one that is searched."""
    request = TuneRequest(model=str(tiny_onnx), backends=("fake",), fix=("process.allocator=jemalloc",))
    plan = make_plan(request, host.model_copy(update={"allocators": ("jemalloc",)}), tmp_path)
    configs = [plan.space.to_config(point) for point in plan.space.enumerate()]
    assert {config.process.allocator for config in configs} == {"jemalloc"}


def facts(**changes):
    """Return a model's facts."""
    values = {"source": "m", "kind": "onnx", "path": "/m", "sha256": "0" * 64, "task": "forward", "weight_bytes": 4}
    return ModelFacts(**{**values, **changes})


def test_traffic_of_a_request():
    """The traffic takes the request's lengths, batch size and seed."""
    request = TuneRequest(model="m", lengths=(64, 512), batch_size=4, seed=7)
    found = workload_of(request, facts(max_length=512))
    assert (found.lengths, found.batch_size, found.seed) == ((64, 512), 4, 7)


def test_data_is_part_of_the_traffic(tmp_path):
    """A data file counts with its rows and its digest."""
    file = tmp_path / "d.txt"
    file.write_text("a\n\nb\n")
    found = workload_of(TuneRequest(model="m", data=str(file)), facts()).data
    assert (found.n, len(found.sha256)) == (2, 64)


def test_data_below_the_home_directory(tmp_path, monkeypatch):
    """A tilde works as in a shell, also through the Python call."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "rows.txt").write_text("a text\n")
    found = workload_of(TuneRequest(model="m", data="~/rows.txt"), facts()).data
    assert (found.n, found.sha256) == (1, digest_file(tmp_path / "rows.txt"))


@pytest.mark.parametrize(
    ("kind", "backend"),
    [("huggingface", "pytorch"), ("python", "pytorch"), ("onnx", "onnxruntime"), ("openvino", "openvino")],
)
def test_baseline_is_the_librarys_default(kind, backend, host):
    """The baseline is the plain engine with nothing set."""
    assert baseline_config(None, facts(kind=kind), host) == Config(backend=backend)


def test_kind_without_a_baseline(host):
    """A kind of model without a default asks for one."""
    with pytest.raises(UsageError, match=r"give --baseline CONFIG\.json"):
        baseline_config(None, facts(kind="gguf"), host)


def test_baseline_of_the_user(tmp_path, host):
    """A config file stands in for the default."""
    config = Config(backend="fake", session={"threads": 1})
    (tmp_path / "b.json").write_text(config.to_json())
    assert baseline_config(str(tmp_path / "b.json"), facts(), host) == config


@pytest.mark.parametrize(
    "change",
    [{"env": {"LD_PRELOAD": "x"}}, {"env": {"PATH": "x"}}],
)
def test_baseline_with_a_variable_that_is_not_allowed(tmp_path, host, change):
    """A baseline may set what any config may, and no more."""
    (tmp_path / "b.json").write_text(json.dumps({"backend": "fake", "process": change}))
    with pytest.raises(UsageError, match=r"--baseline .*b\.json: process\.env"):
        baseline_config(str(tmp_path / "b.json"), facts(), host)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"process": {"placement": {"n_cpus": 100_000}}}, r"process\.placement: 100000 CPUs asked for, but \d+ are"),
        ({"process": {"placement": {"policy": "spread", "n_cpus": 100_000}}}, r"process\.placement: 100000 CPUs"),
        ({"process": {"placement": {"policy": "spread", "core_class": "x"}}}, r"process\.placement"),
        ({"instances": 5}, "instances: 5 asked for"),
        ({"process": {"allocator": "/usr/lib/libjemalloc.so"}}, r"process\.allocator .* in the config: only a name"),
        ({"process": {"openmp_runtime": "../gomp"}}, r"process\.openmp_runtime .* in the config: only a name"),
    ],
)
def test_baseline_that_no_worker_could_have(tmp_path, host, change, reason):
    """It is refused when it is read, before anything is spent."""
    (tmp_path / "b.json").write_text(json.dumps({"backend": "fake", **change}))
    with pytest.raises(UsageError, match=rf"--baseline .*b\.json: {reason}"):
        baseline_config(str(tmp_path / "b.json"), facts(), host)


def test_baseline_with_an_allocator_that_is_not_installed(tmp_path, host):
    """The line names the package."""
    (tmp_path / "b.json").write_text(json.dumps({"backend": "fake", "process": {"allocator": "jemalloc"}}))
    with pytest.raises(HostError, match=r"--baseline .*apt-get install libjemalloc2"):
        baseline_config(str(tmp_path / "b.json"), facts(), host.model_copy(update={"allocators": ()}))


def test_default_limit_is_added(plan):
    """Without a limit of the user's, outputs are limited by the contract."""
    assert [one.path for one in plan().objective.constraints] == ["fidelity.rel_error_max"]


def test_default_limit_gives_way(plan):
    """A user's own fidelity limit stands alone."""
    found = plan(at_most=("fidelity.abs_error_max=1",)).objective.constraints
    assert [one.path for one in found] == ["fidelity.abs_error_max"]


def test_other_limits_leave_the_default(plan):
    """A limit on memory does not switch the fidelity limit off."""
    found = plan(at_most=("peak_rss_bytes=2GiB",)).objective.constraints
    assert [one.path for one in found] == ["peak_rss_bytes", "fidelity.rel_error_max"]


@pytest.mark.parametrize(
    ("options", "part"),
    [
        ({"seed": 1}, "workload"),
        ({"batch_size": 2}, "workload"),
        ({"target": "mean"}, "objective"),
        ({"backends": ("fake",)}, "space"),
        ({"fix": ("session.threads=1",)}, "space"),
    ],
)
def test_key_changes_with_what_is_asked(plan, options, part):
    """Each part of the key changes with its options, and no other."""
    before, after = plan().key_parts, plan(**options).key_parts
    assert {name for name in before if before[name] != after[name]} >= {part}


@pytest.mark.parametrize("options", [{"budget_s": 60.0}, {"trials": 3}, {"output": "x.json"}, {"study": "s"}])
def test_key_ignores_effort_and_places(plan, options):
    """A larger budget goes on in the same study."""
    assert plan().key == plan(**options).key


def test_fallback_is_float32_on_the_whole_budget(plan, host):
    """The fallback is the plainest engine with all CPUs that are granted."""
    found = plan().fallback
    assert (found.backend, found.artifact, found.session["intra_op_threads"]) == ("onnxruntime", (), host.cpu_budget)
