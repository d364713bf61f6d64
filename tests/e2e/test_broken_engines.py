"""Runs on which an engine is broken: its reason is named, and tuning goes on with the others."""

import json
import signal

import pytest

BROKEN_LIBRARY = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
BROKEN_PLUGIN = "raise RuntimeError('built for another version')\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder from which commands and their workers import first."""
    made = tmp_path / "broken"
    made.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(made))
    return made


@pytest.fixture
def with_plugin(folder):
    """Install a backend whose module cannot be imported."""
    metadata = folder / "zbroken-1.0.dist-info"
    metadata.mkdir()
    (folder / "zbroken.py").write_text(BROKEN_PLUGIN)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: zbroken\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[tuner.backends]\nzbroken = zbroken:Engine\n")


def test_library_that_crashes_is_disabled(start, tune_options, folder, tmp_path):
    """OpenVINO dies at its import: after three failures in a row a notice, and trials of the other engine go on."""
    (folder / "openvino").mkdir()
    (folder / "openvino" / "__init__.py").write_text(BROKEN_LIBRARY)
    options = [word if word != "fake" else "fake,openvino" for word in tune_options(tmp_path, 4000, "--budget", "2m")]
    running = start("tune", *options, cwd=tmp_path)
    while "three failures in a row" not in running.wait_for("notice")["text"]:
        pass
    failed = [event for event in running.events if event["kind"] == "trial" and event["data"]["state"] == "failed"]
    said = running.events[-1]["text"]
    after = running.wait_for("trial")
    ended = running.end(signal.SIGINT)
    assert {"openvino" in event["text"] for event in failed} == {True}
    assert sum("SIGSEGV" in event["text"] for event in failed) >= 2
    assert "openvino" in said
    assert ("fake" in after["text"], after["data"]["state"], ended.code) == (True, "measured", 130)
    profile = json.loads((tmp_path / "p.json").read_text())
    assert "backend_disabled" in {notice["code"] for notice in profile["notices"]}
    assert "crash" in {failure["kind"] for failure in profile["failures"]}


@pytest.mark.usefixtures("with_plugin")
def test_plugin_that_cannot_be_imported_is_left_out(start, tune_options, tmp_path):
    """A foreign backend that raises when it is imported is a notice with its reason."""
    words = list(tune_options(tmp_path, 4000, "--budget", "2m"))
    place = words.index("--backends")
    running = start("tune", *words[:place], *words[place + 2 :], cwd=tmp_path)
    while "zbroken" not in running.wait_for("notice")["text"]:
        pass
    said = running.events[-1]["text"]
    assert "cannot be imported: RuntimeError: built for another version" in said
    running.end(signal.SIGINT)


@pytest.mark.usefixtures("with_plugin")
def test_plugin_that_cannot_be_imported_and_is_named(command, tune_options, tmp_path):
    """Where the user asked for it: exit code 3 and one line."""
    words = [word if word != "fake" else "fake,zbroken" for word in tune_options(tmp_path, 4000)]
    ended = command("tune", *words, cwd=tmp_path)
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    assert "backend zbroken: " in ended.err
    assert "built for another version: leave it out of --backends" in ended.err


@pytest.mark.usefixtures("with_plugin")
def test_space_is_shown_without_it(command, tmp_path):
    """`show space` lists the engines that there are."""
    ended = command("show", "space", "--json", cwd=tmp_path)
    names = {backend["backend"] for backend in json.loads(ended.out)["backends"]}
    assert (ended.code, "zbroken" in names, "onnxruntime" in names) == (0, False, True)


def test_tuning_with_a_home_that_cannot_be_written(start, tune_options, monkeypatch, tmp_path):
    """HOME and XDG_CACHE_HOME lie where nobody can write: --cache-dir is enough."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, "/proc/nowhere")
    running = start("tune", *tune_options(tmp_path, 4000, "--budget", "2m"), cwd=tmp_path)
    trial = running.wait_for("trial")
    assert (trial["data"]["state"], running.end(signal.SIGINT).code) == ("measured", 130)


def test_cache_in_a_home_that_cannot_be_written(command, tiny_onnx, tmp_path):
    """Without --cache-dir: exit code 3 and one line that names it."""
    ended = command("tune", "--model", str(tiny_onnx), cwd=tmp_path, XDG_CACHE_HOME="/proc/nowhere")
    assert (ended.code, ended.err.count("\n"), "--cache-dir" in ended.err) == (3, 1, True)
