"""The shipped spaces on hosts of several kinds."""

from collections import Counter
from importlib import import_module
from random import Random

import pytest

from tuner.plugins import entry_points_of

AMX = ("amx_bf16", "amx_int8", "amx_tile", "avx2", "avx512_bf16", "avx512_vnni", "avx_vnni", "fma")
AVX2 = ("avx2", "fma")
VNNI = ("avx2", "avx512_bf16", "avx512_vnni", "fma")
ARM = ("asimd", "asimddp", "asimdhp", "bf16", "i8mm")
HOSTS = {
    "one_cpu": {"n_cores": 1, "isa": AVX2},
    "two_cpus_amx": {"n_cores": 2, "isa": AMX},
    "avx2": {"n_cores": 4, "isa": AVX2, "threads_per_core": 2},
    "arm": {"n_cores": 8, "isa": ARM},
    "two_sockets": {"n_cores": 8, "isa": AMX, "threads_per_core": 2, "n_packages": 2},
    "quota": {"n_cores": 16, "isa": AMX, "quota_cpus": 2.5},
    "hybrid": {
        "n_cores": 8,
        "isa": AVX2,
        "classes": {"performance": (0, 1, 2, 3), "efficiency": (4, 5, 6, 7)},
    },
    "no_pinning": {"n_cores": 2, "isa": AVX2, "is_pinning_available": False},
}


THREADS = {"intra_op_threads", "intra_threads", "threads"}
LARGE = {"two_sockets"}
"""Listing their spaces takes seconds."""


@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name for name in HOSTS])
def space(request, on_host):
    """Return the shipped spaces on each host."""
    shape = dict(HOSTS[request.param])
    return on_host(shape.pop("n_cores"), **shape)


def domain(space, backend, name):
    """Return the values of a parameter."""
    return list(space.backends[backend].by_name[name].domain.values)


def test_every_backend_has_points(space):
    """No host loses a backend, and all points are valid, different and distinct configurations."""
    assert set(space.backends) == {"ctranslate2", "onnxruntime", "openvino", "pytorch"}
    points = space.enumerate()
    assert {space.violations(point) for point in points} == {()}
    assert max(Counter(space.to_config(point).digest() for point in points).values()) == 1


def test_threads_fit_the_mask(space):
    """No point has more threads than CPUs in its mask, or a mask above the budget."""
    for point in space.enumerate():
        config = space.to_config(point)
        [threads] = [value for name, value in config.session.items() if name in THREADS]
        assert 1 <= threads <= config.process.placement.n_cpus


def test_priors_are_valid_as_they_stand(space):
    """Screening starts at the priors themselves: they break no rule of the shipped files."""
    for point in space.artifact_points():
        backend = space.backends[point["backend"]]
        for name in point.keys() - {"backend", "artifact.chain"}:
            if not name.endswith("precision"):
                assert point[name] == backend.by_name[name].prior


def test_float32_is_always_there(space):
    """The plain chain in float32 is part of every space, since smaller types are never assumed better."""
    keys = {(point["backend"], point["artifact.chain"]) for point in space.artifact_points()}
    assert {("onnxruntime", "fp32"), ("openvino", "fp32"), ("pytorch", "eager"), ("ctranslate2", "converted")} <= keys
    assert "float32" in domain(space, "ctranslate2", "session.compute_type")
    assert "float32" in domain(space, "pytorch", "session.precision")
    assert "float32" in domain(space, "openvino", "session.inference_precision")


def test_size_on_two_cpus(on_host):
    """On a small host the space is small enough to be measured in good part."""
    space = on_host(2, isa=AMX)
    sizes = Counter(point["backend"] for point in space.enumerate())
    assert max(sizes.values()) <= 200
    assert sizes.total() <= 400


def test_placement_is_constant_on_two_cpus(on_host):
    """Without siblings, nodes or a quota, the placement has one value and multiplies nothing."""
    space = on_host(2, isa=AMX)
    placements = {space.to_config(point).process.placement for point in space.enumerate()}
    assert len(placements) == 1
    assert space.to_config(space.enumerate()[0]).process.placement.n_cpus == 2


def test_one_cpu(on_host):
    """With one CPU there is one thread, and nothing about spinning."""
    space = on_host(1, isa=AVX2)
    points = space.enumerate()
    assert {point["process.placement.n_cpus"] for point in points} == {1}
    assert not [point for point in points if "session.allow_spinning" in point]


@pytest.mark.parametrize(
    ("isa", "pytorch", "openvino"),
    [
        (AMX, ["float32", "bfloat16", "bfloat16_autocast"], ["float32", "bfloat16"]),
        (AVX2, ["float32"], ["float32"]),
        (ARM, ["float32", "bfloat16", "bfloat16_autocast"], ["float32", "float16"]),
    ],
)
def test_precisions_need_instructions(on_host, isa, pytorch, openvino):
    """A precision is offered only where the CPU has instructions for it."""
    space = on_host(2, isa=isa)
    assert domain(space, "pytorch", "session.precision") == pytorch
    assert domain(space, "openvino", "session.inference_precision") == openvino


def test_missing_precision_is_said_once(on_host):
    """One notice a backend says what is left out, why, and how to try it all the same."""
    notices = [notice for notice in on_host(2, isa=AVX2).notices if "pytorch: session." in notice.detail]
    assert [notice.code for notice in notices] == ["value_dropped"]
    assert "emulate" in notices[0].detail
    assert notices[0].remedy == "--fix session.precision=bfloat16 tries it all the same"


@pytest.mark.parametrize(
    ("isa", "reason"), [(AMX, "beside AMX"), (AVX2, "no int8"), (ARM, "no int8"), (("avx_vnni",), ""), (VNNI, "")]
)
def test_compiled_int8_is_for_cpus_between(on_host, isa, reason):
    """PyTorch's int8 is searched where there are instructions for it and no AMX; elsewhere a notice says why not."""
    space = on_host(2, isa=isa)
    is_offered = ("pytorch", "aot_int8") in {(one["backend"], one["artifact.chain"]) for one in space.artifact_points()}
    said = [notice.detail for notice in space.notices if "aot_int8" in notice.detail]
    assert (is_offered, len(said)) == (not reason, bool(reason))
    assert all(reason in detail for detail in said)


@pytest.mark.parametrize(("isa", "is_offered"), [(AMX, False), (AVX2, True), (ARM, False), (("avx_vnni",), False)])
def test_reduced_range_only_without_vnni(on_host, isa, is_offered):
    """Seven-bit weights are a choice exactly where sums of bytes could saturate."""
    names = on_host(2, isa=isa).parameters("onnxruntime")
    assert ("artifact.ort_dynamic_int8.reduce_range" in names) is is_offered


def test_sibling_threads(on_host):
    """With siblings the mask is one CPU a core or all of them; OpenVINO's own switches appear."""
    space = on_host(4, isa=AVX2, threads_per_core=2)
    assert {point["process.placement.n_cpus"] for point in space.enumerate()} == {4, 8}
    assert {"session.enable_cpu_pinning", "session.enable_hyper_threading"} <= set(space.parameters("openvino"))


def test_sockets(on_host):
    """With two sockets, one of them and all are offered, with memory bound or spread."""
    points = on_host(8, isa=AMX, threads_per_core=2, n_packages=2).enumerate()
    masks = {(point["process.placement.scope"], point["process.placement.n_cpus"]) for point in points}
    assert masks == {("all", 8), ("all", 16), ("package", 4), ("package", 8)}
    assert {point["process.memory_policy"] for point in points} == {"none", "bind", "interleave"}


def test_quota(on_host):
    """A quota of two and a half CPUs allows two threads, pinned or not."""
    points = on_host(16, isa=AMX, quota_cpus=2.5).enumerate()
    assert {point["process.placement.n_cpus"] for point in points} == {2}
    assert {point["process.placement.policy"] for point in points} == {"spread", "none"}


def test_kinds_of_cores(on_host):
    """With two kinds of cores, each kind and all are offered."""
    shape = dict(HOSTS["hybrid"])
    points = on_host(shape.pop("n_cores"), **shape).enumerate()
    masks = {(point["process.placement.core_class"], point["process.placement.n_cpus"]) for point in points}
    assert masks == {("any", 8), ("performance", 4), ("efficiency", 4)}


def test_no_pinning(on_host):
    """Where a process cannot be pinned, nothing asks for it."""
    points = on_host(2, isa=AVX2, is_pinning_available=False).enumerate()
    assert {point["process.placement.policy"] for point in points} == {"none"}


def test_onnx_source(on_host):
    """A source that is ONNX already has no export and none of its settings."""
    space = on_host(2, isa=AMX, options={"dropped_steps": ["onnx_export"], "backends": ["onnxruntime"]})
    assert {"fp32": ()}.items() <= space.backends["onnxruntime"].chains.items()
    assert not [steps for steps in space.backends["onnxruntime"].chains.values() if "onnx_export" in steps]
    assert "artifact.onnx_export.attention" not in space.parameters("onnxruntime")


def test_settings_exist(space):
    """Every value offered is one that the backend's and the steps' own settings accept."""
    for point in space.sample(Random(0), 200):  # noqa: S311 - no secret
        config = space.to_config(point)
        backend = _class_of("tuner.backends", config.backend)
        assert _taken(backend.SessionSettings, config.session) == config.session
        for step in config.artifact:
            assert _taken(_class_of("tuner.steps", step.step).Settings, step.settings) == step.settings


def test_fake_space(load_shipped):
    """The fake has a space of its own, whose values its settings accept."""
    resolved = load_shipped("fake.toml", "process.toml")
    points = resolved.enumerate()
    assert len(points) == 6
    for point in points:
        session = resolved.to_config(point).session
        assert _taken(_class_of("tuner.backends", "fake").SessionSettings, session) == session


def _taken(settings, asked):
    """Return what settings made of `asked` hold under its names, having refused what they do not accept."""
    return settings.from_json_object(asked, source="space").model_dump(include=set(asked))


def _class_of(group, name):
    """Return the class of a plug-in."""
    module, _, attribute = entry_points_of(group)[name].value.partition(":")
    return getattr(import_module(module), attribute)
