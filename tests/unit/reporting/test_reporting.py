"""What a person reads: figures, configs, the summary, a study."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from tuner.errors import UsageError
from tuner.hardware.compatibility import Difference
from tuner.loading.checking import CheckResult
from tuner.records.config import Config, Placement, ProcessSettings, StepSettings
from tuner.records.events import Event
from tuner.records.measurement import Effective, Failure
from tuner.reporting.checks import render_check
from tuner.reporting.formats import config_line, figure, seconds, setting, size
from tuner.reporting.progress import clock, reporter
from tuner.reporting.studies import show_study
from tuner.reporting.summary import changes, render_summary
from tuner.study.store import StudyStore, TrialRecord

SUMMARY = """\
WIN 2.00× [1.90, 2.10] on latency_s.p50 (5 process pairs, resolves 2.0%): faster than the default, confirmed in a fresh paired playoff
                                baseline                         best
p50                                20 ms                        10 ms
p90                                40 ms                        20 ms
p99                                    –                            –
calls                                400                          400
items/s                               50                          100
load                               1.5 s                        1.5 s
peak memory                      512 MiB                      512 MiB
precision                        float32                      float32
threads                                2                            2
fidelity     rel_error_max 0.0010 (n=64)  rel_error_max 0.0010 (n=64)
baseline: onnxruntime · library defaults
best:     onnxruntime · intra_op_threads=2 allow_spinning=false · spread on 2 CPUs
changed:  intra_op_threads default → 2, allow_spinning default → false
12 trials of 48 configurations (3 pruned, 2 rejected) in 4 min 50 s; stopped by budget
profile: 'out dir/p.json'
next: autotune check 'out dir/p.json' · autotune exec 'out dir/p.json' -- CMD · tuner.load('out dir/p.json')
"""  # noqa: E501 - as wide as the terminal shows it


def rendered(render, *args):
    """Return what a renderer prints on a wide terminal without colours."""
    stream = io.StringIO()
    render(*args, Console(file=stream, width=200, highlight=False, soft_wrap=True, color_system=None))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0.0 µs"),
        (12.34e-6, "12.3 µs"),
        (0.00551, "5.51 ms"),
        (0.0999, "99.9 ms"),
        (0.25, "250 ms"),
        (1.44, "1.4 s"),
        (119.9, "119.9 s"),
        (200.0, "3 min 20 s"),
    ],
)
def test_seconds(value, text):
    """Three figures and the unit that fits."""
    assert seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (512 << 20, "512 MiB"),
        (3 << 29, "1.50 GiB"),
        (5 << 40, "5120.00 GiB"),
    ],
)
def test_size(value, text):
    """Binary units."""
    assert size(value) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [("latency_s.p50", "1.0 s"), ("load_s", "1.0 s"), ("peak_rss_bytes", "1 B"), ("throughput_items_per_s", "1")],
)
def test_figure_has_its_paths_unit(path, text):
    """The path says the unit."""
    assert figure(path, 1.0) == text


@pytest.mark.parametrize(("value", "text"), [(True, "true"), (False, "false"), (None, "default"), (2, "2"), ("a", "a")])
def test_setting(value, text):
    """Settings look as in TOML."""
    assert setting(value) == text


def test_config_line():
    """Engine, artifact, session, mask and environment on one line."""
    config = Config(
        backend="onnxruntime",
        artifact=(StepSettings(step="export"), StepSettings(step="int8", settings={"per_channel": True})),
        process=ProcessSettings(placement=Placement(policy="compact"), env={"OMP_NUM_THREADS": "2"}),
    )
    expected = (
        "onnxruntime · export · int8(per_channel=true) · library defaults · compact on all CPUs · OMP_NUM_THREADS=2"
    )
    assert config_line(config) == expected


def test_summary(profile):
    """The whole summary of a win, as it is printed."""
    assert rendered(render_summary, profile(), Path("out dir/p.json")) == SUMMARY


@pytest.mark.parametrize(
    ("verdict", "part"),
    [
        ("NO_WORTHWHILE_WIN", "no measurable gain worth a change: the default stays"),
        ("INCONCLUSIVE", "the playoff could not decide: the default stays"),
        ("FEASIBLE_ONLY", "the default breaks a constraint; this keeps it, no claim of speed"),
    ],
)
def test_other_verdicts(profile, tmp_path, verdict, part):
    """Every verdict says what it means."""
    text = rendered(render_summary, profile(verdict=verdict, speedup=None), tmp_path / "p.json")
    assert text.splitlines()[0] == f"{verdict}: {part}"


def test_summary_of_an_interrupted_run(profile, tmp_path):
    """An incomplete profile says that it is."""
    assert "incomplete: the run was interrupted" in rendered(render_summary, profile(incomplete=True), tmp_path)


def test_summary_shows_the_challenger(profile, profile_document, tmp_path):
    """A finalist that was not confirmed is shown as such."""
    document = profile_document()
    best, base = document["best"], document["baseline"]
    made = profile(verdict="INCONCLUSIVE", best=base, challenger=best)
    assert "challenger (not confirmed): onnxruntime · intra_op_threads=2" in rendered(render_summary, made, tmp_path)


def test_summary_shows_failures_and_notices(profile, tmp_path):
    """Failures are counted with an example, notices have their remedy; markup in them is text."""
    made = profile(
        failures=[{"kind": "crash", "count": 2, "example": "fake: [bold]SIGSEGV[/bold]"}],
        notices=[{"code": "noisy_host", "detail": "busy", "remedy": "stop other work"}],
    )
    lines = rendered(render_summary, made, tmp_path).splitlines()
    assert {"2 × crash: fake: [bold]SIGSEGV[/bold]", "note noisy_host: busy → stop other work"} <= set(lines)


def test_brackets_are_text(profile, profile_document, measurement, tmp_path):
    """Whatever a profile's texts look like, they are shown as they are."""
    best = profile_document()["best"]
    best["config"]["session"] = {"name": "[/x]"}
    best["measurement"] = measurement(effective=Effective(precision="[/y]")).model_dump(mode="json")
    effort = profile_document()["effort"] | {"stopped_by": "[/z]"}
    text = rendered(
        render_summary, profile(best=best, challenger=best, verdict="INCONCLUSIVE", effort=effort), tmp_path
    )
    assert [text.count(part) for part in ("name=[/x]", "[/y]", "stopped by [/z]")] == [2, 1, 1]


def test_no_change():
    """Where the baseline is best, nothing changes."""
    assert changes(Config(backend="a"), Config(backend="a")) == ["best: the baseline itself"]


def test_settings_of_another_engine_are_no_changes():
    """Settings of two engines are not compared by name."""
    assert len(changes(Config(backend="a"), Config(backend="b", session={"threads": 2}))) == 2


@pytest.mark.parametrize(
    ("elapsed_s", "text"), [(None, ""), (0.4, "[ 0:00] "), (65.0, "[ 1:05] "), (6000.0, "[100:00] ")]
)
def test_clock(elapsed_s, text):
    """Minutes and seconds stand in front of a line."""
    assert clock(Event(kind="trial", text="x", elapsed_s=elapsed_s)) == text


def test_progress_plain(capsys):
    """Plain progress is one line an event, on standard error."""
    with reporter("plain") as on_event:
        on_event(Event(kind="trial", text="#1", elapsed_s=1.0))
    assert capsys.readouterr() == ("", "[ 0:01] #1\n")


def test_progress_json(capsys):
    """Progress as JSON is one document a line."""
    with reporter("json") as on_event:
        on_event(Event(kind="trial", text="#1", data={"value": 0.5}))
    assert json.loads(capsys.readouterr().err)["data"] == {"value": 0.5}


def test_progress_none(capsys):
    """No progress is no output."""
    with reporter("none") as on_event:
        on_event(Event(kind="trial", text="#1"))
    assert capsys.readouterr() == ("", "")


def test_progress_is_plain_without_a_terminal(capsys):
    """Where standard error is no terminal, ``auto`` is plain."""
    with reporter("auto") as on_event:
        on_event(Event(kind="trial", text="#1"))
    assert capsys.readouterr().err == "#1\n"


def test_check_that_holds():
    """Nothing differs: one line."""
    text = rendered(render_check, CheckResult(holds=True, serves="best", differences=()))
    assert text == "holds: the profile can be served here\n"


def test_check_that_does_not_hold():
    """Each difference, then what is served."""
    one = Difference(field="isa", then="avx2", now=None, consequence="refuse", detail="this CPU lacks avx2")
    text = rendered(render_check, CheckResult(holds=False, serves="fallback", differences=(one,)))
    lines = text.splitlines()
    assert (lines[:2], lines[2].split(":")[0]) == (
        ["field  then  now  follows", "isa    avx2  –    refuse   this CPU lacks avx2"],
        "does not hold",
    )


@pytest.fixture
def study(tmp_path, measurement):
    """Return a study directory with a baseline, a measured and a failed trial."""
    store = StudyStore(tmp_path / "study")
    store.open()
    config = Config(backend="fake")
    measured = {"config": config, "state": "measured", "measurement": measurement(0.01)}
    store.append(TrialRecord(number=0, purpose="baseline", value=0.0, **measured))
    store.append(TrialRecord(number=1, purpose="search", value=-0.693147, violations={"load_s<=1": 0.5}, **measured))
    failure = {"stage": "load", "kind": "crash", "message": "SIGSEGV: [x]"}
    store.append(
        TrialRecord.from_json(
            json.dumps({
                "number": 2, "purpose": "search", "config": {"backend": "fake"}, "state": "failed", "failure": failure,
            })
        )
    )  # fmt: skip
    store.close()
    return store.directory


def test_study_is_shown_best_first(study, capsys, monkeypatch):
    """The best trial comes first, failures last with their reason."""
    monkeypatch.setenv("COLUMNS", "200")
    show_study(study, as_json=False)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in lines] == ["trial", "1", "0", "2", "#2"]


def test_study_shows_broken_constraints(study, capsys):
    """A measured trial that breaks a constraint says which."""
    show_study(study, as_json=False)
    assert "measured, misses load_s<=1" in capsys.readouterr().out


def test_study_shows_failures(study, capsys):
    """A failure shows stage, kind and message as they are."""
    show_study(study, as_json=False)
    assert "#2 failed in load: crash: SIGSEGV: [x]" in capsys.readouterr().out


def test_study_shows_what_stands_in_its_file_as_text(study, capsys, monkeypatch):
    """Brackets are no markup, control characters steer no terminal, and a ratio that is no float is a sign."""
    monkeypatch.setenv("COLUMNS", "200")
    config = Config(backend="f[/x]\x1b[31m", session={"name": "\x1b]0;title\x07[red]"})
    store = StudyStore(study)
    store.append(
        TrialRecord(number=3, purpose="search", config=config, state="measured", value=1e9, violations={"a[/b]": 1.0})
    )
    failure = Failure(stage="load", kind="crash", message="\x1b[2Jboom")
    store.append(TrialRecord(number=4, purpose="search", config=config, state="failed", failure=failure))
    store.close()
    show_study(study, as_json=False)
    out = capsys.readouterr().out
    assert ("f[/x][31m · name=]0;title[red]" in out, "misses a[/b]" in out, "×∞" in out) == (True, True, True)
    assert ("crash: [2Jboom" in out, "\x1b" in out, "\x07" in out) == (True, False, False)


def test_study_as_json(study, capsys):
    """One document with every trial."""
    show_study(study, as_json=True)
    assert [trial["number"] for trial in json.loads(capsys.readouterr().out)["trials"]] == [0, 1, 2]


def test_directory_without_a_study(tmp_path):
    """Any other directory is refused."""
    with pytest.raises(UsageError, match="no study here"):
        show_study(tmp_path, as_json=False)
