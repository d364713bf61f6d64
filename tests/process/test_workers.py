"""Workers and their parent: limits, signals, ends, and what is in force."""

import os
import resource
import select
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tuner.errors import ProtocolError, TrialError
from tuner.messages import Bye, Load, Loaded, Quit, Warm, Warmed
from tuner.records.config import Placement, ProcessSettings
from tuner.runner.process import LOG_LIMIT_BYTES, TOKEN
from tuner.runner.sweeping import remember, sweep_leftovers

WAIT_S = 20.0


def gone(descriptor):
    """Wait until the process of a pidfd has ended; False if it still runs after the limit."""
    return bool(select.select([descriptor], [], [], WAIT_S)[0])


def test_arm_measures(open_arm):
    """A fresh process opens, warms up and times a block, with the system's own record of it."""
    arm = open_arm(latency_us=200)
    arm.warm(cap_s=0.3)
    done, telemetry = arm.block(5, discard_calls=0, discard_s=0.0)
    assert (len(done.latencies_s), telemetry.wall_s > 0) == (5, True)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (signal.SIGILL, "illegal_instruction"),
        (signal.SIGABRT, "crash"),
        (signal.SIGBUS, "crash"),
        (signal.SIGFPE, "crash"),
        (signal.SIGSEGV, "crash"),
        (signal.SIGTERM, "crash"),
        (signal.SIGKILL, "out_of_memory"),
    ],
)
def test_signals_are_classified(open_arm, number, kind):
    """A worker that dies of a signal is a failure of its kind, named (case C59)."""
    with pytest.raises(TrialError, match=number.name) as caught:
        open_arm(mode="crash", stage="open", signal=int(number))
    assert (caught.value.stage, caught.value.kind) == ("load", kind)


def test_crash_while_running(open_arm):
    """The stage that crashed is named."""
    arm = open_arm(mode="crash", after_calls=2)
    with pytest.raises(TrialError) as caught:
        arm.warm(cap_s=0.3)
    assert (caught.value.stage, caught.value.kind) == ("warm", "crash")


def test_exit_without_an_answer(open_arm):
    """An exit status of 0 without a result is no success (case C59)."""
    with pytest.raises(TrialError, match="exit status 0 and without an answer") as caught:
        open_arm(mode="exit_silently", stage="open")
    assert caught.value.kind == "crash"


def test_dead_worker_is_gone(spawn):
    """After a kill from outside, nothing of the worker stays."""
    worker = spawn()
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(TrialError):
        worker.ask(Quit(), Bye, limit_s=WAIT_S)
    assert not worker.alive()


def load_of(session, prepared, tmp_path):
    """Return the command that loads the fake backend."""
    return Load(
        backend="fake", artifact=str(prepared), session=session, prepared=str(prepared), cache_dir=str(tmp_path)
    )


def test_hang_while_loading(spawn, prepared, tmp_path):
    """A load that does not answer within its limit is a timeout of that stage."""
    command = load_of({"mode": "hang", "stage": "open"}, prepared, tmp_path)
    worker = spawn()
    with pytest.raises(TrialError, match="no answer within") as caught:
        worker.ask(command, Loaded, limit_s=0.5)
    assert (caught.value.stage, caught.value.kind) == ("load", "timeout")


def test_hang_while_running(spawn, prepared, tmp_path):
    """A call that never returns is a timeout of the stage it is in."""
    worker = spawn()
    worker.ask(load_of({"mode": "hang"}, prepared, tmp_path), Loaded, limit_s=WAIT_S)
    with pytest.raises(TrialError, match="no answer within") as caught:
        worker.ask(Warm(cap_s=0.1), Warmed, limit_s=0.5)
    assert (caught.value.stage, caught.value.kind) == ("warm", "timeout")


def test_hanging_worker_is_killed(spawn, prepared, tmp_path):
    """After a timeout the worker is gone."""
    worker = spawn()
    descriptor = os.pidfd_open(worker.pid)
    with pytest.raises(TrialError):
        worker.ask(load_of({"mode": "hang", "stage": "open"}, prepared, tmp_path), Loaded, limit_s=0.2)
    assert gone(descriptor)
    os.close(descriptor)


def test_unexpected_answer(spawn):
    """An answer of another kind is a bug of ours, and ends the worker."""
    worker = spawn()
    with pytest.raises(ProtocolError, match="answered bye where Loaded was due"):
        worker.ask(Quit(), Loaded, limit_s=WAIT_S)
    assert not worker.alive()


def test_flood_is_bounded(open_arm, tmp_path):
    """Megabytes of printing neither block the worker nor fill the disk."""
    open_arm(mode="print", stage="open")
    [log] = (tmp_path / "logs").iterdir()
    assert 0 < log.stat().st_size <= LOG_LIMIT_BYTES


def test_prints_are_in_the_log(spawn, tmp_path):
    """What a worker says about its failure is kept."""
    worker = spawn(name="mine")
    with pytest.raises(TrialError):
        worker.ask(Warm(), Warmed, limit_s=WAIT_S)
    assert "nothing is loaded" in (tmp_path / "logs" / "mine.log").read_text()


def test_pause_stops_and_resume_goes_on(open_arm):
    """A paused arm is stopped by the kernel; resumed, it measures on."""
    arm = open_arm(latency_us=100)
    arm.warm(cap_s=0.2)
    arm.pause()
    os.waitid(os.P_PID, arm.process.pid, os.WSTOPPED | os.WNOWAIT)
    assert psutil.Process(arm.process.pid).status() == psutil.STATUS_STOPPED
    done, _ = arm.block(3, discard_calls=0, discard_s=0.0)
    assert len(done.latencies_s) == 3


def test_paused_arm_can_be_closed(open_arm):
    """A stopped process leaves when it is told to."""
    arm = open_arm()
    arm.pause()
    arm.close()
    assert not arm.process.alive()


def test_close_twice(spawn):
    """Closing is always safe."""
    worker = spawn()
    worker.close()
    worker.close()
    assert not worker.alive()


def test_no_descriptor_is_left(spawn):
    """Starting and ending workers leaves no open files in the parent."""
    spawn().close()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the listing itself is one of them, each time
    for _ in range(3):
        spawn().close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - as above


def environment_of(pid):
    """Return the environment a process was started with."""
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


def test_thread_variables_of_the_user_do_not_leak(spawn, monkeypatch):
    """OMP_*, KMP_*, MKL_* and malloc settings of the user reach no worker."""
    names = ["OMP_NUM_THREADS", "KMP_BLOCKTIME", "GOMP_SPINCOUNT", "MKL_NUM_THREADS", "MALLOC_ARENA_MAX", "LD_PRELOAD"]
    for name in names:
        monkeypatch.setenv(name, "1" if name != "LD_PRELOAD" else "")
    assert set(names) & set(environment_of(spawn().pid)) == set()


def test_variables_of_the_config_are_in_force(spawn):
    """What a config sets is in the environment before the interpreter starts."""
    worker = spawn(ProcessSettings(env={"OMP_NUM_THREADS": "3"}))
    assert environment_of(worker.pid)["OMP_NUM_THREADS"] == "3"


def test_worker_is_kept_off_the_network(spawn):
    """Trials run offline."""
    found = environment_of(spawn().pid)
    assert (found["HF_HUB_OFFLINE"], found["TRANSFORMERS_OFFLINE"]) == ("1", "1")


def test_mask_is_in_force(open_arm):
    """A placement of one CPU is the mask of the process, and what the worker reads back."""
    arm = open_arm(ProcessSettings(placement=Placement(policy="spread", n_cpus=1)))
    mask = tuple(sorted(os.sched_getaffinity(arm.process.pid)))
    assert (len(mask), arm.loaded.effective.cpus) == (1, mask)


def test_allocator_that_is_not_installed(open_arm):
    """An allocator that is not there is not silently left out."""
    with pytest.raises(TrialError, match="nosuchmalloc is not installed") as caught:
        open_arm(ProcessSettings(allocator="nosuchmalloc"))
    assert caught.value.kind == "not_applied"


def test_worker_is_the_first_to_be_killed(spawn):
    """When memory runs out, the kernel takes a worker, not the tuner."""
    assert int(Path(f"/proc/{spawn().pid}/oom_score_adj").read_text()) == 800


def test_worker_has_a_session_of_its_own(spawn):
    """Ctrl-C at the terminal reaches the tuner alone."""
    pid = spawn().pid
    assert os.getsid(pid) == pid


PARENT = """
import sys
from pathlib import Path
from tuner.hardware.detection import detect
from tuner.records.config import Config
from tuner.runner.local import LocalRunner
from tuner.runner.sweeping import become_subreaper

become_subreaper()
here, work = Path(sys.argv[1]), Path(sys.argv[2])
runner = LocalRunner(host=detect(), artifact_of=lambda _: here, prepared=here, work=work, cache_dir=work / "cache")
arm = runner.open(Config(backend=sys.argv[3]))
arm.pause()
print(arm.process.pid, flush=True)
sys.stdin.readline()
arm.close()
print("closed", flush=True)
sys.stdin.readline()
"""


def test_stopped_worker_dies_with_its_parent(script, prepared, tmp_path):
    """Kill -9 of the tuner leaves no stopped worker behind."""
    parent = script(PARENT, str(prepared), str(tmp_path), "fake")
    descriptor = os.pidfd_open(int(parent.stdout.readline()))
    parent.kill()
    assert gone(descriptor)
    os.close(descriptor)


def test_descendants_that_left_the_group_are_swept(script, prepared, tmp_path, plugin_folder):
    """A process that a library started in a session of its own ends with the worker."""
    environ = {**os.environ, "PYTHONPATH": str(plugin_folder)}
    parent = script(PARENT, str(prepared), str(tmp_path), "leaver", env=environ)
    parent.stdout.readline()
    descriptor = os.pidfd_open(int((tmp_path / "cache" / "engines" / "left.pid").read_text()))
    parent.stdin.write("\n")
    parent.stdin.flush()
    parent.stdout.readline()
    assert gone(descriptor)
    os.close(descriptor)


@pytest.fixture
def sleeper():
    """Return a function that starts a process with a worker's token; all are killed afterwards."""
    started = []

    def start(token):
        process = subprocess.Popen(
            [sys.executable, "-c", "print(flush=True); input()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, TOKEN: token},
        )
        started.append(process)
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_leftovers_are_swept(sleeper, tmp_path):
    """Workers that a dead tuner left behind end at the next start."""
    process = sleeper("t1")
    remember(tmp_path / "workers.jsonl", process.pid, "t1")
    assert (sweep_leftovers(tmp_path / "workers.jsonl"), process.wait()) == (1, -signal.SIGKILL)


def test_a_stranger_with_the_same_pid_is_spared(sleeper, tmp_path):
    """A process that has the number but not the token is not ours."""
    process = sleeper("somebody")
    remember(tmp_path / "workers.jsonl", process.pid, "t1")
    assert (sweep_leftovers(tmp_path / "workers.jsonl"), process.poll()) == (0, None)


@pytest.mark.parametrize(
    "text", ["", "{\n", '{"pid": "x"}\n', '[]\n{"pid": 999999999, "created_s": 0, "token": "t"}\n']
)
def test_damaged_list_of_workers(tmp_path, text):
    """A list that cannot be read is forgotten."""
    (tmp_path / "workers.jsonl").write_text(text)
    assert (sweep_leftovers(tmp_path / "workers.jsonl"), (tmp_path / "workers.jsonl").exists()) == (0, False)


def test_the_parent_rests_while_a_block_is_timed(open_arm):
    """It waits in the kernel: its own CPU time (not wall time) stays under 1% of a block of two seconds."""
    arm = open_arm(latency_us=20_000)
    arm.warm(cap_s=1.0)
    before = resource.getrusage(resource.RUSAGE_SELF)
    done, _ = arm.block(100, discard_calls=3, discard_s=0.0)
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert spent_s < 0.01 * max(done.wall_s, 2.0)
