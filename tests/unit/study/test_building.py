"""Artifact chains are built once, in workers; failures are remembered."""

import types
from pathlib import Path

import pytest

from tuner.artifacts.store import Store
from tuner.errors import HostError, TrialError, UsageError
from tuner.messages import Built, PreparedFiles
from tuner.records.config import Config, StepSettings
from tuner.records.model import ModelFacts
from tuner.records.workload import Workload
from tuner.study.build_times import guess_s
from tuner.study.building import Workshop, library_versions, uses_data

EXPORT = StepSettings(step="onnx_export")
INT8 = StepSettings(step="ort_dynamic_int8", settings={"per_channel": True})
FACTS = ModelFacts(
    source="m", kind="huggingface", path="/models/m", sha256="0" * 64, task="feature-extraction", weight_bytes=4
)


class StubWorker:
    """Builds a file with the step's name in it, or fails as told."""

    log = Path("worker.log")

    def __init__(self, asked, failure):
        self.asked = asked
        self.failure = failure

    def ask(self, command, expected, *, limit_s):
        """Build or fail."""
        assert limit_s > 0
        self.asked.append(command)
        if self.failure is not None:
            raise self.failure
        if expected is PreparedFiles:
            return PreparedFiles(files=(), prepare_s=0.1, call_s=0.01)
        (Path(command.directory) / "model.onnx").write_text(command.step)
        return Built(build_s=2.5, files=("model.onnx",))

    def close(self):
        """Nothing to close."""


@pytest.fixture
def make_workshop(tmp_path):
    """Return a function that makes a workshop on one store; `asked` has the commands that workers got."""

    def make(failure=None):
        asked = []
        workshop = Workshop(
            store=Store(tmp_path / "cache"),
            spawn=lambda _, __: (StubWorker(asked, failure), ()),
            model=FACTS,
            on_build=lambda _, __: None,
        )
        return types.SimpleNamespace(workshop=workshop, asked=asked)

    return make


def config(*steps):
    """Return a config with a chain."""
    return Config(backend="onnxruntime", artifact=steps)


def test_nothing_to_build(make_workshop):
    """A config without a chain opens the model's source."""
    workshop = make_workshop().workshop
    found = (workshop.is_built(config()), workshop.ensure(config()), workshop.artifact_of(config()))
    assert found == (True, 0.0, Path("/models/m"))


def test_chain_is_built_in_order(make_workshop):
    """Each step runs in a worker of its own and is given what was built before."""
    made = make_workshop()
    made.workshop.ensure(config(EXPORT, INT8))
    assert [(one.step, sorted(one.inputs)) for one in made.asked] == [
        ("onnx_export", ["source"]),
        ("ort_dynamic_int8", ["onnx_export", "source"]),
    ]


def test_built_once(make_workshop):
    """What is in the store is not built again, by this run or a later one."""
    make_workshop().workshop.ensure(config(EXPORT, INT8))
    later = make_workshop()
    assert (later.workshop.ensure(config(EXPORT, INT8)), later.asked) == (0.0, [])


def test_shared_prefix_is_built_once(make_workshop):
    """Two chains that begin alike share the beginning."""
    made = make_workshop()
    made.workshop.ensure(config(EXPORT))
    made.workshop.ensure(config(EXPORT, INT8))
    assert [one.step for one in made.asked] == ["onnx_export", "ort_dynamic_int8"]


def test_expected_seconds_are_those_of_what_lacks(make_workshop):
    """A chain costs what its unbuilt steps are guessed to take, nothing once it is there."""
    workshop = make_workshop().workshop
    before = workshop.expected_s(config(EXPORT, INT8))
    workshop.ensure(config(EXPORT))
    between = workshop.expected_s(config(EXPORT, INT8))
    workshop.ensure(config(EXPORT, INT8))
    guesses = [guess_s(step.step, FACTS.weight_bytes) for step in (EXPORT, INT8)]
    assert [before, between] == pytest.approx([sum(guesses), guesses[1]])
    assert workshop.expected_s(config(EXPORT, INT8)) == 0.0


def test_what_a_build_took_replaces_the_guess(make_workshop):
    """Another artifact of the same step is expected to take as long, in this run and in a later one."""
    first = make_workshop().workshop
    assert first.expected_s(config(EXPORT)) > 0
    first.ensure(config(EXPORT, INT8))
    other = INT8.model_copy(update={"settings": {"per_channel": False}})
    found = [workshop.expected_s(config(EXPORT, other)) for workshop in (first, make_workshop().workshop)]
    assert found == [2.5, 2.5]


def test_a_build_known_to_fail_takes_no_time(make_workshop):
    """What failed before is not waited for."""
    with pytest.raises(TrialError):
        make_workshop(TrialError("build", "crash", "boom")).workshop.ensure(config(EXPORT))
    assert make_workshop().workshop.expected_s(config(EXPORT, INT8)) == 0.0


def test_settings_make_another_artifact(make_workshop):
    """Another setting is another artifact."""
    workshop = make_workshop().workshop
    other = INT8.model_copy(update={"settings": {"per_channel": False}})
    assert workshop.keys((EXPORT, INT8))[1][0] != workshop.keys((EXPORT, other))[1][0]


def test_library_versions_are_in_the_key(make_workshop):
    """Another version of a library builds anew (case C40)."""
    [(_, made_of)] = make_workshop().workshop.keys((EXPORT,))
    assert {"onnx", "torch"} <= set(made_of["versions"]) <= set(library_versions())


def test_artifact_is_opened_from_the_store(make_workshop):
    """The directory of the last step is what a backend opens."""
    workshop = make_workshop().workshop
    workshop.ensure(config(EXPORT))
    assert (workshop.artifact_of(config(EXPORT)) / "model.onnx").read_text() == "onnx_export"


def test_unbuilt_artifact_is_a_failed_trial(make_workshop):
    """Opening what is not built is a failure of that trial."""
    with pytest.raises(TrialError, match="is not built"):
        make_workshop().workshop.artifact_of(config(EXPORT))


@pytest.mark.parametrize("kind", ["crash", "out_of_memory", "timeout", "error", "unsupported"])
def test_failure_is_remembered(make_workshop, kind):
    """A build that failed is not tried again, in this run or a later one; the reason stays."""
    with pytest.raises(TrialError):
        make_workshop(TrialError("build", kind, "boom")).workshop.ensure(config(EXPORT))
    later = make_workshop()
    with pytest.raises(TrialError, match="onnx_export: boom") as caught:
        later.workshop.ensure(config(EXPORT))
    assert (caught.value.kind, later.asked) == (kind, [])


def test_failed_step_fails_the_chains_on_it(make_workshop):
    """A chain on a failed step fails with the step's reason, without a build."""
    with pytest.raises(TrialError):
        make_workshop(TrialError("build", "crash", "boom")).workshop.ensure(config(EXPORT))
    later = make_workshop()
    with pytest.raises(TrialError, match="onnx_export: boom"):
        later.workshop.ensure(config(EXPORT, INT8))
    assert later.asked == []


def test_what_may_pass_is_tried_again(make_workshop):
    """A setting of the process that was not in force says nothing of the build."""
    with pytest.raises(TrialError):
        make_workshop(TrialError("spawn", "not_applied", "no jemalloc")).workshop.ensure(config(EXPORT))
    later = make_workshop()
    later.workshop.ensure(config(EXPORT))
    assert len(later.asked) == 1


def test_full_disk_is_no_failure_of_the_step(make_workshop, full_disk):
    """A disk that was full is not remembered against the step."""
    with full_disk(64), pytest.raises(TrialError, match="free space or --cache-dir"):
        make_workshop().workshop.ensure(config(EXPORT))
    later = make_workshop()
    later.workshop.ensure(config(EXPORT))
    assert len(later.asked) == 1


FULL = TrialError("build", "error", "OSError: [Errno 28] No space left on device")


def test_full_disk_in_a_worker_is_no_failure_of_the_step(make_workshop):
    """A step that found the disk full is tried again once there is space."""
    with pytest.raises(TrialError):
        make_workshop(FULL).workshop.ensure(config(EXPORT))
    later = make_workshop()
    later.workshop.ensure(config(EXPORT))
    assert len(later.asked) == 1


def test_full_disk_while_preparing(make_workshop):
    """A disk that is full is the host's fault, with the way out."""
    with pytest.raises(HostError, match=r"No space left on device.*free space or name another --cache-dir"):
        make_workshop(FULL).workshop.prepare(Workload(task="forward"), None, max_samples=4, sample_budget_s=1.0)


def test_relative_data_are_found_by_the_worker(make_workshop, tmp_path, monkeypatch):
    """The worker works in another directory: it is told the whole path of the data, from where the user is."""
    made = make_workshop(TrialError("prepare", "error", "stop"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="stop"):
        made.workshop.prepare(Workload(task="forward"), "rows.npz", max_samples=4, sample_budget_s=1.0)
    assert [command.data for command in made.asked] == [str(tmp_path / "rows.npz")]


@pytest.mark.parametrize("kind", ["error", "unsupported", "incorrect"])
def test_preparing_that_fails_is_the_users(make_workshop, kind):
    """What is wrong with model or data is said as it is."""
    workshop = make_workshop(TrialError("prepare", kind, "line 3: not JSON")).workshop
    with pytest.raises(UsageError, match=r"^line 3: not JSON$"):
        workshop.prepare(Workload(task="forward"), None, max_samples=4, sample_budget_s=1.0)


def test_preparing_out_of_memory(make_workshop):
    """A model that ran out of memory is told with its size (case C14)."""
    workshop = make_workshop(TrialError("prepare", "out_of_memory", "SIGKILL")).workshop
    with pytest.raises(UsageError, match="model too large for memory"):
        workshop.prepare(Workload(task="forward"), None, max_samples=4, sample_budget_s=1.0)


def test_only_calibration_uses_data():
    """Export and dynamic quantization do not depend on the prepared data."""
    assert not uses_data((EXPORT, INT8))


def test_preparing_where_no_worker_starts(tmp_path):
    """The host's fault, not a bug: one line that names what looks further."""

    def spawn(_, __):
        raise TrialError("spawn", "crash", "SIGKILL")

    workshop = Workshop(store=Store(tmp_path), spawn=spawn, model=FACTS, on_build=lambda _, __: None)
    with pytest.raises(HostError, match=r"no worker runs here \(spawn: crash: SIGKILL\): see `autotune doctor`"):
        workshop.prepare(Workload(task="feature-extraction"), None, max_samples=16, sample_budget_s=1.0)
