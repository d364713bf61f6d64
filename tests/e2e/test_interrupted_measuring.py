"""Ctrl-C and SIGTERM in `verify` and `bench`: exit code 130, one line, and nothing left behind."""

import json
import signal
import types

import psutil
import pytest

CONFIG = {"backend": "fake", "session": {"latency_us": 4000, "threads": 1}}


@pytest.fixture
def stopped(start, tmp_path):
    """Return a function that ends a command by a signal at an event of its, and tells what was seen of it."""

    def run(number, event, *argv, cwd=tmp_path):
        (cwd / "config.json").write_text(json.dumps(CONFIG))
        cache = tmp_path / "cache"
        running = start(*argv, "--cache-dir", str(cache), cwd=cwd)
        running.wait_for(event)
        workers = psutil.Process(running.process.pid).children(recursive=True)
        ended = running.end(number)
        _, alive = psutil.wait_procs(workers, timeout=20)
        said = [line for line in ended.err if not line.startswith("{")]
        left = [path.name for path in cache.rglob("*") if path.name.startswith(("bench-", ".tmp-"))]
        return types.SimpleNamespace(code=ended.code, out=ended.out, said=said, alive=alive, left=left)

    return run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("event", ["build", "built"])
def test_bench(stopped, tiny_onnx, number, event):
    """While the workload is prepared, and while processes are measured."""
    seen = stopped(number, event, "bench", "config.json", "--model", str(tiny_onnx), "--processes", "50")
    assert (seen.code, seen.out, seen.said) == (130, "", ["autotune: interrupted; nothing was changed"])
    assert (seen.alive, seen.left) == ([], [])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_verify(stopped, full_run, number):
    """In the playoff; the profile is as it was."""
    before = full_run.output.read_bytes()
    seen = stopped(number, "playoff", "verify", "p.json", "--budget", "4m", cwd=full_run.cwd)
    assert (seen.code, seen.out, seen.said) == (130, "", ["autotune: interrupted; nothing was changed"])
    assert (seen.alive, seen.left, full_run.output.read_bytes()) == ([], [], before)
