"""The worker through pipes: one command, one answer."""

import json

import pytest

WARM = {"command": "warm", "cap_s": 0.2}
BLOCK = {"command": "block", "n": 5, "discard_s": 0.0}
FIDELITY = {"command": "fidelity", "max_samples": 20}
QUIT = {"command": "quit"}


def names(answers):
    """Return the kinds of answers."""
    return [answer["answer"] for answer in answers]


def test_a_whole_run(by_hand, load_line):
    """Every command is answered once, in order."""
    answers, code = by_hand(load_line(threads=2), WARM, BLOCK, FIDELITY, QUIT)
    assert (names(answers), code) == (["ready", "loaded", "warmed", "block", "fidelity", "bye"], 0)


def test_ready_tells_mask_and_version(by_hand):
    """Before anything is loaded, the worker says who it is."""
    answers, _ = by_hand(QUIT)
    assert set(answers[0]) == {"answer", "versions", "pid", "cpus"}


def test_loaded_reads_back(by_hand, load_line):
    """What is in force stands in the answer, read back."""
    answers, _ = by_hand(load_line(threads=2), QUIT)
    effective = answers[1]["effective"]
    assert (effective["threads"], effective["precision"], effective["settings"]["threads"]) == (2, "float32", 2)


def test_block_has_every_call(by_hand, load_line):
    """A block has as many latencies as were asked for."""
    answers, _ = by_hand(load_line(), WARM, BLOCK, QUIT)
    assert len(answers[3]["latencies_s"]) == 5


def test_fidelity_of_an_honest_engine(by_hand, load_line):
    """The fake answers what the reference answered."""
    answers, _ = by_hand(load_line(), FIDELITY, QUIT)
    figures = answers[2]["fidelity"]
    assert (figures["rel_error_max"] < 1e-6, figures["n"]) == (True, 20)


def test_probe(by_hand):
    """The sentinel runs as often as asked."""
    answers, _ = by_hand({"command": "probe", "repeats": 3}, QUIT)
    assert len(answers[1]["samples_s"]["sentinel"]) == 3


def test_end_of_input_is_an_end(by_hand):
    """A worker whose parent closed the pipe leaves in peace."""
    answers, code = by_hand()
    assert (names(answers), code) == (["ready"], 0)


def test_blank_lines_are_nothing(by_hand):
    """A blank line is no command."""
    answers, code = by_hand("", "  ", QUIT)
    assert (names(answers), code) == (["ready", "bye"], 0)


@pytest.mark.parametrize("line", ["noise", '{"command": "format"}', '{"command": "block", "n": 0}'])
def test_what_is_no_command_fails(by_hand, line):
    """An unknown command is answered with a failure, and the worker leaves."""
    answers, code = by_hand(line, QUIT)
    assert ([(one["answer"], one.get("stage")) for one in answers], code) == (
        [("ready", None), ("failed", "command")],
        1,
    )


def test_block_before_load(by_hand):
    """A command out of order fails with what to send first."""
    answers, _ = by_hand(BLOCK, QUIT)
    assert answers[1]["message"] == "nothing is loaded: send `load` first"


@pytest.mark.parametrize(
    ("session", "kind"),
    [
        ({"mode": "error", "stage": "open"}, "error"),
        ({"mode": "unsupported", "stage": "open"}, "unsupported"),
        ({"mode": "lie", "threads": 2}, "not_applied"),
        ({"no_such_setting": 1}, "error"),
        ({"threads": "two"}, "error"),
    ],
)
def test_failures_of_loading(by_hand, load_line, session, kind):
    """Each failure has its kind; a setting that reads back otherwise is none of the results."""
    answers, code = by_hand(load_line(**session), QUIT)
    assert ([(one["answer"], one.get("kind")) for one in answers], code) == ([("ready", None), ("failed", kind)], 1)


@pytest.mark.parametrize("mode", ["nan_output", "wrong_shape"])
def test_incorrect_outputs(by_hand, load_line, mode):
    """Outputs that are not finite or of another shape are refused."""
    answers, _ = by_hand(load_line(mode=mode), FIDELITY, QUIT)
    assert (answers[2]["stage"], answers[2]["kind"]) == ("fidelity", "incorrect")
    assert answers[2]["message"].startswith("output 'output': ")


def test_wrong_outputs_are_a_figure(by_hand, load_line):
    """Outputs far from the reference are told as fidelity, after the quick look alone."""
    answers, _ = by_hand(load_line(mode="wrong_output"), {**FIDELITY, "quick_samples": 4}, QUIT)
    found = answers[2]
    assert (found["stopped_early"], found["fidelity"]["n"], found["fidelity"]["rel_error_max"] > 0.02) == (
        True,
        4,
        True,
    )


def test_message_is_one_bounded_line(by_hand, load_line):
    """Whatever an engine raises is one line."""
    answers, _ = by_hand(load_line(mode="error", stage="open"), QUIT)
    assert answers[1]["message"] == "ValueError: the fake backend was asked to fail"


def test_printing_is_no_answer(by_hand, load_line):
    """A library that floods both streams changes no answer."""
    answers, code = by_hand(load_line(mode="print", stage="open"), QUIT)
    assert (names(answers), code) == (["ready", "loaded", "bye"], 0)


def test_forged_answers_are_no_answers(by_hand, load_line, plugin_folder):
    """A whole answer that a library or its children print is not taken for one."""
    answers, code = by_hand(load_line("forger"), QUIT, env={"PYTHONPATH": str(plugin_folder)})
    assert (names(answers), code) == (["ready", "loaded", "bye"], 0)


@pytest.mark.parametrize("name", ["json.py", "numpy.py", "onnx.py", "onnxruntime.py", "pydantic.py", "tuner.py"])
def test_files_in_the_current_directory_are_not_imported(by_hand, tiny_onnx, load_line, tmp_path, name):
    """A file named like a library in the current directory is never run."""
    (tmp_path / name).write_text("raise SystemExit('imported')")
    command = {**load_line("onnxruntime"), "artifact": str(tiny_onnx)}
    answers, _ = by_hand(command, QUIT, cwd=tmp_path)
    assert names(answers) == ["ready", "loaded", "bye"]


def test_parent_that_is_gone(by_hand):
    """A worker whose parent is gone when it starts does not start."""
    answers, code = by_hand(QUIT, options=["--parent", "1"])
    assert (answers, code) == ([], 1)


def test_answers_are_strict_json(by_hand, load_line):
    """No answer holds NaN: a strict reader takes them all."""
    answers, _ = by_hand(load_line(mode="nan_output"), WARM, FIDELITY, QUIT)
    assert json.loads(json.dumps(answers, allow_nan=False)) == answers
