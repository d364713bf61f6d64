"""The readable answer of `autotune bench`."""

from rich.console import Console

from tuner.records.measurement import Measured
from tuner.reporting.formats import config_line, figure
from tuner.reporting.summary import measurement_table


def render_bench(
    measured: Measured,
    target: str,
    interval: tuple[float, float, float],
    processes: int,
    console: Console | None = None,
) -> None:
    """Print one configuration's figures; `interval` is value, low and high of the target over processes."""
    console = console or Console(highlight=False, soft_wrap=True)
    value, low, high = (figure(target, each) for each in interval)
    console.print(config_line(measured.config), markup=False)
    console.print(f"{target}: {value} \\[{low}, {high}] over {processes} fresh processes")
    console.print(measurement_table([("", measured.measurement)]))
