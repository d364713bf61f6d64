"""Renders a resolved search space for ``autotune show space``; it decides nothing about it."""

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tuner.reporting.formats import setting
from tuner.space.domains import spelled
from tuner.space.resolved import ResolvedSpace
from tuner.space.walking import ResolvedBackend, ResolvedParameter

__all__ = ["count_lines", "render_space"]


def count_lines(resolved: ResolvedSpace) -> list[str]:
    """Return plain lines: the size of the space and what each backend has of it.

    A space too large to be listed has an estimate of its size, and no counts by backend.
    """
    if not resolved.backends:
        return ["The space is empty on this host."]
    names = ", ".join(resolved.backends)
    if not resolved.is_listed():
        return [f"about {resolved.size()} configurations (estimated) of {names}; they are sampled, not listed"]
    points = resolved.enumerate()
    lines = [f"{len(points)} configurations"]
    for name in resolved.backends:
        own = [point for point in points if point["backend"] == name]
        kinds = len({resolved.numerics_key(point) for point in own})
        lines.append(f"  {name}: {len(own)}, with {kinds} different {'output' if kinds == 1 else 'outputs'} to check")
    return lines


def render_space(resolved: ResolvedSpace) -> RenderableType:
    """Return counts, a table of parameters for each backend, its rules, and what was left out."""
    parts: list[RenderableType] = [Text(line) for line in count_lines(resolved)]
    for backend in resolved.backends.values():
        parts += [Text(), _table(backend), *_rules(backend)]
    if resolved.notices:
        parts.append(Text())
    for notice in resolved.notices:
        remedy = f" ({notice.remedy})" if notice.remedy else ""
        parts.append(Text(f"note: {notice.detail}{remedy}"))
    return Group(*parts)


def _table(backend: ResolvedBackend) -> Table:
    """Return the parameters that vary; what has one value here stands below the table."""
    table = Table(box=SIMPLE_HEAD, title=Text(backend.name, style="bold"), title_justify="left")
    table.caption, table.caption_justify = _constants(backend), "left"
    for title in ("parameter", "values", "engine's own", "start"):
        table.add_column(title, overflow="fold")
    for parameter in backend.parameters:
        if len(parameter.domain) > 1:
            table.add_row(*(Text(cell) for cell in _row(parameter)))
    return table


def _row(parameter: ResolvedParameter) -> Iterator[str]:
    condition = f"\n  when {parameter.when.text}" if parameter.when else ""
    yield parameter.name + (" *" if parameter.numerics or parameter.step else "") + condition
    yield parameter.domain.text()
    yield "" if parameter.default is None else setting(parameter.default)
    yield "" if parameter.prior is None else setting(parameter.prior)


def _constants(backend: ResolvedBackend) -> Text:
    """Return the parameters with one value, and what the mark means."""
    lines = [f"chain {name}: {' > '.join(steps) or 'the source itself'}" for name, steps in backend.chains.items()]
    fixed = [
        f"{parameter.name}={spelled(parameter.domain.values[0])}"
        for parameter in backend.parameters
        if len(parameter.domain) == 1
    ]
    if fixed:
        lines.append(f"the same in all: {', '.join(fixed)}")
    if any(len(item.domain) > 1 and (item.numerics or item.step) for item in backend.parameters):
        lines.append("* can change outputs, which are checked")
    return Text("\n".join(lines))


def _rules(backend: ResolvedBackend) -> Iterator[Text]:
    varying = {parameter.name for parameter in backend.parameters if len(parameter.domain) > 1}
    for rule in backend.rules:
        if rule.require.parameters & varying and rule.require.parameters <= backend.by_name.keys():
            yield Text(f"rule: {rule.require.text} ({rule.reason})")
