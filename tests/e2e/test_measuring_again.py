"""`verify`, `bench`, `cache` and `doctor` on the profile of a whole run."""

import json
import types

import pytest


@pytest.fixture(scope="module")
def measured(full_run, start):
    """Return how three commands ended, run at the same time: what they find is a hundred times clearer than the noise.

    ``forged`` claims the opposite of what was measured, in a file that is read back afterwards.
    """
    profile = json.loads(full_run.output.read_text())
    profile["best"]["config"], profile["baseline"]["config"] = profile["baseline"]["config"], profile["best"]["config"]
    forged = full_run.cwd / "cache" / "forged.json"
    forged.write_text(json.dumps(profile))
    where = ("--cache-dir", "cache")
    running = [
        start("verify", "p.json", "--budget", "2m", *where, "--json", cwd=full_run.cwd),
        start("verify", str(forged), "--budget", "2m", *where, cwd=full_run.cwd),
        start("bench", "p.json", "--processes", "2", *where, "--json", cwd=full_run.cwd),
    ]
    confirmed, contradicted, bench = (each.end() for each in running)
    is_kept = json.loads(forged.read_text()) == profile
    return types.SimpleNamespace(confirmed=confirmed, contradicted=contradicted, is_kept=is_kept, bench=bench)


def test_verify_confirms(measured):
    """A hundred times faster is confirmed by fresh pairs: exit code 0."""
    ended = measured.confirmed
    assert (ended.code, json.loads(ended.out)["outcome"]) == (0, "confirmed"), ended.err


def test_verify_contradicts_a_false_claim(measured):
    """A profile whose best is slower than its baseline: exit code 6, and the profile is as it was."""
    ended = measured.contradicted
    assert (ended.code, ended.out.startswith("contradicted"), measured.is_kept) == (6, True, True), ended.err


def test_verify_contradicts_wrong_outputs(full_run, command):
    """A best whose outputs are no numbers holds no claim, however fast: exit code 6."""
    profile = json.loads(full_run.output.read_text())
    profile["best"]["config"]["session"]["mode"] = "nan_output"
    forged = full_run.cwd / "cache" / "wrong.json"
    forged.write_text(json.dumps(profile))
    ended = command("verify", str(forged), "--budget", "2m", "--cache-dir", "cache", cwd=full_run.cwd)
    assert (ended.code, ended.out.startswith("contradicted"), "an output is wrong" in ended.out) == (6, True, True)


def test_verify_without_time_names_the_budget(full_run, command):
    """Too little time for a look: exit code 7 and the budget that would do."""
    ended = command("verify", "p.json", "--budget", "1s", "--cache-dir", "cache", cwd=full_run.cwd)
    assert (ended.code, "not resolved" in ended.out, "--budget" in ended.out) == (7, True, True)


def test_bench_measures_a_profile(measured):
    """The best configuration in fresh processes, with an interval around its figure."""
    ended = measured.bench
    result = json.loads(ended.out)
    assert (ended.code, result["processes"], result["target"]) == (0, 2, "latency_s.p50"), ended.err
    assert result["low"] <= result["figure"] <= result["high"]


def test_bench_of_a_config_asks_for_the_model(full_run, command):
    """A config.json alone is not enough: exit code 2, one line."""
    ended = command("bench", "baseline.json", cwd=full_run.cwd)
    assert (ended.code, ended.err.count("\n"), "--model" in ended.err) == (2, 1, True)


def test_cache_lists_and_prunes(full_run, command):
    """Entries are listed; pruning to nothing removes all that no profile needs."""
    listed = json.loads(command("cache", "--cache-dir", "cache", "--json", cwd=full_run.cwd).out)
    assert {entry["what"] for entry in listed["entries"]} == {"prepared"}


def test_doctor_audits(full_run, command):
    """Findings with remedies, the class of the host and what it resolves; exit code 0 where tuning works."""
    ended = command("doctor", "--cache-dir", "cache", "--json", cwd=full_run.cwd)
    found = json.loads(ended.out)
    assert (ended.code, found["can_tune"]) == (0, True)
    assert found["host_class"] in {"quiet", "ok", "noisy", "hostile"}
    assert set(found["resolvable"]) == {"5 pairs", "8 pairs", "12 pairs"}


def test_doctor_without_a_cache_cannot_tune(full_run, command):
    """A cache that cannot be written: exit code 3 and a finding that says so."""
    ended = command("doctor", "--cache-dir", "baseline.json/cache", "--json", cwd=full_run.cwd)
    states = {finding["name"]: finding["state"] for finding in json.loads(ended.out)["findings"]}
    assert (ended.code, states["cache"]) == (3, "bad")
