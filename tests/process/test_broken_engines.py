"""Engines that are installed and broken: whatever their import does is one failed trial with a named reason."""

import pytest

from tuner.errors import TrialError
from tuner.hardware.detection import detect
from tuner.records.config import Config
from tuner.runner.local import LocalRunner

BREAKS = {
    "missing library": ("raise ImportError('libtbb.so.12: cannot open shared object file')", "error", "libtbb.so.12"),
    "wrong numpy": ("raise RuntimeError('module compiled against ABI version 0x1')", "error", "RuntimeError: module"),
    "exit": ("raise SystemExit(3)", "crash", "exit status 3"),
    "quiet exit": ("import os; os._exit(0)", "crash", "exit status 0 and without an answer"),
    "segfault": ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "crash", "SIGSEGV"),
    "illegal instruction": (
        "import os, signal; os.kill(os.getpid(), signal.SIGILL)",
        "illegal_instruction",
        "SIGILL",
    ),
    "abort": ("import os; os.abort()", "crash", "SIGABRT"),
}


@pytest.fixture
def load_broken(tiny_onnx, prepared, tmp_path, monkeypatch):
    """Return a function that opens a config whose engine's library is `code`, and gives the failure."""

    def load(backend, code):
        folder = tmp_path / "broken" / backend
        folder.mkdir(parents=True)
        (folder / "__init__.py").write_text(code + "\n")
        monkeypatch.setenv("PYTHONPATH", str(folder.parent))
        runner = LocalRunner(
            host=detect(), artifact_of=lambda _: tiny_onnx, prepared=prepared, work=tmp_path, cache_dir=tmp_path
        )
        with pytest.raises(TrialError) as caught:
            runner.open(Config(backend=backend))
        return caught.value

    return load


@pytest.mark.parametrize("backend", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("what", BREAKS)
def test_broken_engine_is_named(load_broken, backend, what):
    """The stage is loading; the kind and the message say how it broke, in one line."""
    code, kind, message = BREAKS[what]
    failure = load_broken(backend, code)
    assert (failure.stage, failure.kind, failure.message.count("\n")) == ("load", kind, 0)
    assert message in failure.message
