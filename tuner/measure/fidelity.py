"""Compares outputs with the float32 reference: embeddings, classes, graphs; it runs no model and gates nothing."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.measure.quantiles import least_n
from tuner.records.measurement import Fidelity

Outputs = Mapping[str, np.ndarray]


class Incorrect(ValueError):  # noqa: N818 - the failure kind's name
    """An output that is not finite, or has another shape or another kind of dtype than the reference."""


@dataclass(frozen=True)
class Verified:
    """Figures over the samples seen; `stopped_early` says that the quick look already missed the limit."""

    fidelity: Fidelity
    stopped_early: bool


def check_output(name: str, reference: np.ndarray, candidate: np.ndarray) -> None:
    """Refuse an output that no tolerance makes right.

    Float widths may differ (a bfloat16 engine may answer float32 or float16); float against integer may not.

    Raises:
        Incorrect: Not finite, wrong shape or wrong kind of dtype.
    """
    if candidate.shape != reference.shape:
        raise Incorrect(f"output {name!r}: shape {candidate.shape}, expected {reference.shape}")
    if np.issubdtype(candidate.dtype, np.floating) != np.issubdtype(reference.dtype, np.floating):
        raise Incorrect(f"output {name!r}: dtype {candidate.dtype}, expected {reference.dtype}")
    if np.issubdtype(candidate.dtype, np.floating):
        bad = int(np.size(candidate) - np.count_nonzero(np.isfinite(candidate)))
        if bad:
            raise Incorrect(f"output {name!r}: {bad} of {candidate.size} values are not finite")


def compare_embedding(
    reference: Sequence[np.ndarray],
    candidate: Sequence[np.ndarray],
    *,
    tokens: tuple[Sequence[np.ndarray], Sequence[np.ndarray]] | None = None,
) -> Fidelity:
    """Compare pooled vectors by cosine, row by row.

    Args:
        reference: Per sample, float arrays (rows, d), after the model's own pooling and normalisation.
        candidate: The same of the candidate.
        tokens: Optional (reference, candidate) token vectors (…, d) without padding; reported, never gated.

    Raises:
        Incorrect: See `check_output`.
    """
    one, two = _rows(reference, candidate, "embedding")
    cosines = _cosines(one, two)
    details = _interval_of_least(cosines)
    if tokens is not None:
        token_cosines = _cosines(*_rows(*tokens, "tokens"))
        details |= {"token_cosine_min": float(token_cosines.min()), "token_cosine_mean": float(token_cosines.mean())}
    return Fidelity(
        cosine_min=float(cosines.min()),
        cosine_mean=float(cosines.mean()),
        rel_error_max=float(_relative_errors(one, two).max()),
        abs_error_max=float(np.abs(one - two).max()),
        n=len(cosines),
        method="embedding",
        details=details,
    )


def compare_classes(reference: Sequence[np.ndarray], candidate: Sequence[np.ndarray]) -> Fidelity:
    """Compare logits (…, classes): share of equal top class with its Wilson interval, mean KL(reference ‖ candidate).

    Of one class, which is a score, the share of pairs of samples that come in the same order stands for the top class.

    Raises:
        Incorrect: See `check_output`.
    """
    one, two = _rows(reference, candidate, "logits")
    n = len(one)
    share = _same_order(one[:, 0], two[:, 0]) if one.shape[1] == 1 else float((one.argmax(1) == two.argmax(1)).mean())
    low, high = wilson_interval(round(share * n), n)
    log_p, log_q = _log_softmax(one), _log_softmax(two)
    kl = np.sum(np.exp(log_p) * (log_p - log_q), axis=1)
    return Fidelity(
        top1_agreement=share,
        kl_mean=max(0.0, float(kl.mean())),
        rel_error_max=float(_relative_errors(one, two).max()),
        abs_error_max=float(np.abs(one - two).max()),
        n=n,
        method="classes",
        details={"top1_agreement_low": low, "top1_agreement_high": high, "kl_max": max(0.0, float(kl.max()))},
    )


NEAR = 1e-3
"""Scores nearer than this, in standard deviations, come in no order."""


def _same_order(one: np.ndarray, two: np.ndarray) -> float:
    """Return the share of pairs that have the same order in `two`, of those that a thousandth of the spread parts."""
    apart = one[:, None] - one[None, :]
    same = np.sign(two[:, None] - two[None, :]) == np.sign(apart)
    told = np.abs(apart) > NEAR * one.std()
    return float(same[told].mean()) if told.any() else 1.0


def compare_graph(reference: Sequence[Outputs], candidate: Sequence[Outputs]) -> Fidelity:
    """Compare every output of a plain graph by its relative error ‖c - r‖₂ / ‖r‖₂ per sample; the worst counts.

    Raises:
        Incorrect: An output is missing; see `check_output`.
    """
    relative: list[float] = []
    absolute = 0.0
    for one, two in zip(reference, candidate, strict=True):
        worst = 0.0
        for name, expected in one.items():
            if name not in two:
                raise Incorrect(f"output {name!r} is missing; the candidate has {', '.join(sorted(two)) or 'none'}")
            check_output(name, expected, two[name])
            left, right = expected.astype(float).ravel(), two[name].astype(float).ravel()
            worst = max(worst, float(_relative_errors(left[None], right[None])[0]))
            absolute = max(absolute, float(np.abs(left - right).max(initial=0.0)))
        relative.append(worst)
    return Fidelity(
        rel_error_max=max(relative),
        abs_error_max=absolute,
        n=len(relative),
        method="graph",
        details={"rel_error_mean": float(np.mean(relative))},
    )


def verify_samples(
    n: int, quick_n: int, figures: Callable[[int], Fidelity], is_hopeless: Callable[[Fidelity], bool]
) -> Verified:
    """Compare the first min(quick_n, n) samples, then all `n` unless the quick look is hopeless.

    Args:
        n: Samples of the whole set.
        quick_n: Samples of the quick look.
        figures: Compares the first k samples; it may keep the outputs of earlier calls.
        is_hopeless: Says whether the quick look alone refuses the candidate; see `misses_default_limit`.
    """
    quick = figures(min(quick_n, n))
    if quick_n >= n:
        return Verified(quick, stopped_early=False)
    return Verified(quick, stopped_early=True) if is_hopeless(quick) else Verified(figures(n), stopped_early=False)


def misses_default_limit(fidelity: Fidelity, *, slack: float = 2.0) -> bool:
    """Say whether a quick look is so far off that the whole set cannot save it.

    A least cosine or greatest error only gets worse with more samples; it is refused when it misses the task's default
    limit by more than `slack` times. An agreement is refused when even its upper limit misses.
    """
    if fidelity.cosine_min is not None:
        return 1 - fidelity.cosine_min > slack * 0.01
    if fidelity.top1_agreement is not None:
        return fidelity.details["top1_agreement_high"] < 0.99  # noqa: PLR2004 - the contract's default limit
    return fidelity.rel_error_max is not None and fidelity.rel_error_max > slack * 0.02


def wilson_interval(successes: int, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Return the 95% score interval of a share (Wilson 1927; Brown, Cai & DasGupta 2001)."""
    share = successes / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


def _rows(reference: Sequence[np.ndarray], candidate: Sequence[np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Check every pair and stack their rows, float64, last axis kept."""
    for one, two in zip(reference, candidate, strict=True):
        check_output(name, np.asarray(one), np.asarray(two))
    width = np.asarray(reference[0]).shape[-1]
    stacked = [
        np.concatenate([np.asarray(x, dtype=float).reshape(-1, width) for x in xs]) for xs in (reference, candidate)
    ]
    return stacked[0], stacked[1]


def _cosines(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return the cosine of every row pair; two zero vectors are equal, one zero vector is as far as can be."""
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(two, axis=1)
    both_zero = (np.linalg.norm(one, axis=1) == 0) & (np.linalg.norm(two, axis=1) == 0)
    dots = np.einsum("ij,ij->i", one, two)
    cosines = np.divide(dots, lengths, out=np.zeros_like(dots), where=lengths > 0)
    return np.clip(np.where(both_zero, 1.0, cosines), -1.0, 1.0)


def _relative_errors(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return ‖two - one‖ / ‖one‖ of every row; over a zero row the error itself."""
    lengths = np.linalg.norm(one, axis=1)
    errors = np.linalg.norm(two - one, axis=1)
    relative: np.ndarray = np.divide(errors, lengths, out=errors.copy(), where=lengths > 0)
    return relative


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    normalised: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return normalised


def _interval_of_least(cosines: np.ndarray) -> dict[str, float]:
    """State what the least of n cosines says: with 95% confidence this share of the traffic is not below it."""
    n = len(cosines)
    return {"share_covered": 0.05 ** (1 / n), "n_for_p99": float(least_n(0.99))}
