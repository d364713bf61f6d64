"""Runs that end with a reason after workers were started."""


def test_budget_too_small(tmp_path, command, tune_options):
    """A budget that does not hold five pairs is said with the least that works."""
    ended = command("tune", *tune_options(tmp_path, 4000, "--budget", "9s"), "--progress", "none", cwd=tmp_path)
    assert (ended.code, ended.err.count("\n")) == (2, 1), ended.err
    assert "--budget 9s is too small" in ended.err
    assert "or more" in ended.err


def test_no_feasible_config(tmp_path, command, tune_options):
    """Nothing keeps the constraints: exit code 4, the closest miss, an existing profile left alone."""
    (tmp_path / "p.json").write_text("mine")
    options = tune_options(tmp_path, 4000, "--budget", "5m", "--trials", "1", "--max", "peak_rss_bytes=1MiB")
    ended = command("tune", *options, "--progress", "none", cwd=tmp_path)
    assert (ended.code, ended.err.count("\n"), (tmp_path / "p.json").read_text()) == (4, 1, "mine"), ended.err
    assert "closest: " in ended.err
