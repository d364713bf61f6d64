"""Describes a resolved backend as JSON values, for ``autotune show space``; it lays nothing out."""

from tuner.space.walking import ResolvedBackend, ResolvedParameter

__all__ = ["described"]


def described(backend: ResolvedBackend) -> dict[str, object]:
    """Return chains, parameters and rules of one backend."""
    return {
        "backend": backend.name,
        "chains": {name: list(steps) for name, steps in backend.chains.items()},
        "parameters": [_parameter(parameter) for parameter in backend.parameters],
        "rules": [{"require": rule.require.text, "reason": rule.reason} for rule in backend.rules],
    }


def _parameter(parameter: ResolvedParameter) -> dict[str, object]:
    return {
        "name": parameter.name,
        "kind": parameter.domain.kind,
        "values": parameter.domain.text(),
        "n_values": len(parameter.domain),
        "default": parameter.default,
        "prior": parameter.prior,
        "numerics": parameter.numerics or parameter.step is not None,
        "when": parameter.when.text if parameter.when else None,
        "reason": parameter.reason,
    }
