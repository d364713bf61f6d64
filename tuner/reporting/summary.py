"""The readable summary of a profile: baseline, best, interval, what changed, what to type next."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tuner.records.config import Config
from tuner.records.measurement import Measurement
from tuner.records.profile import Profile
from tuner.reporting.formats import config_line, figure, seconds, setting, size

VERDICTS = {
    "WIN": ("bold green", "faster than the default, confirmed in a fresh paired playoff"),
    "NO_WORTHWHILE_WIN": ("bold", "no measurable gain worth a change: the default stays"),
    "INCONCLUSIVE": ("bold yellow", "the playoff could not decide: the default stays"),
    "FEASIBLE_ONLY": ("bold", "the default breaks a constraint; this keeps it, no claim of speed"),
}


def render_summary(profile: Profile, path: Path, console: Console | None = None) -> None:
    """Print the summary on standard output."""
    console = console or Console(highlight=False, soft_wrap=True)
    console.print(headline(profile))
    console.print(table(profile))
    for line in (*important(profile), *changes(profile.baseline.config, profile.best.config)):
        console.print(line, markup=False)
    if profile.challenger is not None and profile.verdict != "WIN":
        console.print(f"challenger (not confirmed): {config_line(profile.challenger.config)}", markup=False)
    effort = profile.effort
    console.print(
        f"{effort.trials} trials of {effort.space_size} configurations ({effort.pruned} pruned, {effort.rejected} "
        f"rejected) in {seconds(effort.wall_s)}; stopped by {effort.stopped_by}",
        style="dim",
        markup=False,
    )
    for failure in profile.failures:
        console.print(f"{failure.count} × {failure.kind}: {failure.example}", style="dim", markup=False)
    for notice in profile.notices:
        remedy = f" → {notice.remedy}" if notice.remedy else ""
        console.print(f"note {notice.code}: {notice.detail}{remedy}", style="yellow", markup=False)
    if profile.incomplete:
        console.print("incomplete: the run was interrupted; the same command goes on from here", style="bold yellow")
    quoted = shlex.quote(str(path))
    console.print(f"profile: {quoted}", markup=False)
    console.print(
        f"next: autotune check {quoted} · autotune exec {quoted} -- CMD · tuner.load({str(path)!r})", markup=False
    )


def headline(profile: Profile) -> Text:
    """Return the verdict with the ratio and its interval."""
    style, meaning = VERDICTS[profile.verdict]
    text = Text(profile.verdict, style=style)
    speedup = profile.speedup
    if speedup is not None:
        low, high = speedup.ci95
        text.append(f" {speedup.ratio:.2f}× [{low:.2f}, {high:.2f}] on {profile.objective.target}", style=style)
        text.append(f" ({speedup.pairs} process pairs")
        text.append(f", resolves {speedup.mde:.1%})" if speedup.mde is not None else ")")
    text.append(f": {meaning}")
    return text


def table(profile: Profile) -> Table:
    """Return baseline and best (and challenger) side by side."""
    columns: list[tuple[str, Measurement]] = [("baseline", profile.baseline.measurement)]
    if profile.best.config != profile.baseline.config:
        columns.append(("best", profile.best.measurement))
    if profile.challenger is not None and profile.challenger.config != profile.best.config:
        columns.append(("challenger", profile.challenger.measurement))
    return measurement_table(columns)


def measurement_table(columns: Sequence[tuple[str, Measurement]]) -> Table:
    """Return measurements side by side, one a column."""
    found = Table(box=None, pad_edge=False)
    found.add_column("")
    for name, _ in columns:
        found.add_column(name, justify="right")
    rows: list[tuple[str, Callable[[Measurement], str]]] = [
        ("p50", lambda m: figure("latency_s.p50", m.latency_s.p50)),
        ("p90", lambda m: figure("latency_s.p90", m.latency_s.p90)),
        ("p99", lambda m: figure("latency_s.p99", m.latency_s.p99)),
        ("calls", lambda m: str(m.latency_s.n)),
        ("items/s", lambda m: figure("throughput_items_per_s", m.throughput_items_per_s)),
        ("load", lambda m: seconds(m.load_s)),
        ("peak memory", lambda m: size(m.peak_rss_bytes)),
        ("precision", lambda m: (m.effective.precision if m.effective else None) or "–"),
        ("threads", lambda m: str(m.effective.threads) if m.effective and m.effective.threads else "–"),
        ("fidelity", fidelity_text),
    ]
    for name, text in rows:
        found.add_row(name, *(escape(text(measurement)) for _, measurement in columns))
    return found


def important(profile: Profile, least_percent: float = 5.0) -> list[str]:
    """Return which knobs mattered, on one line; none if the trials do not say."""
    rows = [(name, one) for name, one in profile.importance.items() if one.percent >= least_percent]
    rows.sort(key=lambda row: -row[1].percent)
    texts = [f"{name} {one.percent:.0f}% [{one.low:.0f}, {one.high:.0f}]" for name, one in rows[:5]]
    return [f"mattered: {', '.join(texts)}"] if texts else []


def fidelity_text(measurement: Measurement) -> str:
    """Return the gated fidelity figure with its name."""
    fidelity = measurement.fidelity
    if fidelity is None:
        return "–"
    if fidelity.metric is not None and fidelity.metric_loss_high is not None:
        return f"metric {fidelity.metric:.4f} (loses ≤ {fidelity.metric_loss_high:.4f})"
    for name in ("cosine_min", "top1_agreement", "rel_error_max", "perplexity_ratio"):
        value = getattr(fidelity, name)
        if value is not None:
            return f"{name} {value:.4f} (n={fidelity.n})"
    return f"n={fidelity.n}"


def changes(before: Config, after: Config) -> list[str]:
    """Return what the best config changes against the baseline, a line each."""
    if before == after:
        return ["best: the baseline itself"]
    lines = [f"baseline: {config_line(before)}", f"best:     {config_line(after)}"]
    changed = [
        f"{name} {setting(before.session.get(name))} → {setting(value)}"
        for name, value in after.session.items()
        if before.backend == after.backend and before.session.get(name) != value
    ]
    if changed:
        lines.append(f"changed:  {', '.join(changed)}")
    return lines
