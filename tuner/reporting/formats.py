"""Formats seconds, bytes, ratios and settings for people; pure."""

from collections.abc import Mapping

from tuner.records.base import Scalar
from tuner.records.config import Config


def seconds(value: float | None) -> str:
    """Format a latency or duration: ``5.51 ms``, ``1.4 s``, ``3 min 20 s``."""
    if value is None:
        return "–"
    if value < 1e-3:  # noqa: PLR2004 - below a millisecond
        return f"{value * 1e6:.1f} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms" if value < 0.1 else f"{value * 1e3:.0f} ms"  # noqa: PLR2004 - three figures
    if value < 120:  # noqa: PLR2004 - two minutes
        return f"{value:.1f} s"
    return f"{int(value // 60)} min {int(value % 60)} s"


def size(value: float | None) -> str:
    """Format bytes: ``512 MiB``."""
    if value is None:
        return "–"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(value) < 1024 or unit == "GiB":  # noqa: PLR2004 - the next unit
            return f"{value:.0f} {unit}" if unit in ("B", "KiB", "MiB") else f"{value:.2f} {unit}"
        value /= 1024
    return "–"


def figure(path: str, value: float | None) -> str:
    """Format the figure at a measurement path with its unit."""
    if value is None:
        return "–"
    if path.startswith(("latency_s", "ttft_s", "tpot_s")) or path in ("load_s", "first_call_s"):
        return seconds(value)
    if path.endswith("_bytes"):
        return size(value)
    return f"{value:.4g}"


def setting(value: Scalar) -> str:
    """Format one setting as it is written in TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "default" if value is None else str(value)


def settings(values: Mapping[str, Scalar]) -> str:
    """Format settings on one line."""
    return " ".join(f"{name}={setting(value)}" for name, value in values.items())


def config_line(config: Config) -> str:
    """Format a config on one line: engine, artifact, session, mask."""
    parts = [config.backend]
    parts += [f"{step.step}({settings(step.settings)})" if step.settings else step.step for step in config.artifact]
    if config.session:
        parts.append(settings(config.session))
    else:
        parts.append("library defaults")
    if config.process.placement.policy != "none":
        parts.append(f"{config.process.placement.policy} on {config.process.placement.n_cpus or 'all'} CPUs")
    parts += [f"{name}={value}" for name, value in config.process.env.items()]
    return " · ".join(parts)
