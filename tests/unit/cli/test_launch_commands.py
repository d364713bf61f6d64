"""`autotune env` and `autotune bundle`: output, one-line errors, exit codes."""

import json

import pytest

from tuner.cli.app import run


@pytest.fixture
def write(tmp_path, profile_document):
    """Return a function that writes a profile whose best has process settings and one thread."""

    def make(**process):
        best = profile_document()["best"]
        best["config"]["session"] = {}
        best["config"]["process"] = process
        (tmp_path / "p.json").write_text(json.dumps(profile_document(best=best)))
        return str(tmp_path / "p.json")

    return make


@pytest.mark.parametrize("launcher", ["shell", "docker", "systemd", "k8s", "json"])
def test_every_format_has_the_variable(write, capsys, launcher):
    """Every format says what the config asks for; nothing is on standard error."""
    assert run(["env", write(env={"OMP_WAIT_POLICY": "passive"}), "--format", launcher]) == 0
    printed = capsys.readouterr()
    assert ("OMP_WAIT_POLICY" in printed.out, "passive" in printed.out, printed.err) == (True, True, "")


def test_default_is_shell(write, capsys):
    """Without a format, lines for a shell."""
    assert run(["env", write()]) == 0
    assert capsys.readouterr().out.startswith("unset ")


def test_unknown_format(write, capsys):
    """A format that does not exist is a usage error."""
    assert run(["env", write(), "--format", "fish"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_settings_that_do_not_fit(write, capsys):
    """More CPUs than any host has: exit code 5 with the way out, nothing on standard output."""
    path = write(placement={"policy": "spread", "n_cpus": 100_000})
    assert run(["env", path]) == 5
    printed = capsys.readouterr()
    assert (printed.out, "--adapt" in printed.err) == ("", True)


def test_settings_that_are_adapted(write, capsys):
    """On demand they are cut to what is granted, which is said on standard error."""
    path = write(placement={"policy": "spread", "n_cpus": 100_000})
    assert run(["env", path, "--adapt", "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert printed.err.startswith("autotune: adapted: process.placement: ")
    assert list(json.loads(printed.out)["not_applied"]) == ["process.placement"]


def test_settings_of_a_newer_version(write, capsys):
    """A setting that is not followed is said on standard error, the others are put in force."""
    path = write(env={"OMP_WAIT_POLICY": "passive"}, io_priority="idle")
    assert run(["env", path]) == 0
    printed = capsys.readouterr()
    said = "autotune: best.config.process.io_priority: this version does not know it and does not follow it\n"
    assert ("OMP_WAIT_POLICY=passive" in printed.out, printed.err) == (True, said)


def test_what_is_adapted_where_nobody_can_read_it(write, capsys, monkeypatch):
    """A closed standard error is no reason not to print the settings."""
    monkeypatch.setattr("sys.stderr", None)
    assert run(["env", write(placement={"policy": "spread", "n_cpus": 100_000}), "--adapt"]) == 0
    assert capsys.readouterr().out.startswith("unset ")


def test_bundle(write, tmp_path, capsys):
    """A bundle is made, and its profile named."""
    assert run(["bundle", write(), "-o", str(tmp_path / "b")]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'b' / 'profile.json'}: 1 files")


def test_bundle_needs_a_place(write, capsys):
    """Without -o nothing is guessed."""
    assert run(["bundle", write()]) == 2
    assert "output" in capsys.readouterr().err


def test_bundle_over_other_files(write, tmp_path, capsys):
    """Other files are left alone: exit code 2, one line."""
    write()
    assert run(["bundle", str(tmp_path / "p.json"), "-o", str(tmp_path)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("command", ["env", "check", "retune", "show"])
def test_absent_profile(tmp_path, capsys, command):
    """A path that does not exist is said so."""
    assert run([command, str(tmp_path / "absent.json")]) == 2
    assert "no such profile" in capsys.readouterr().err
