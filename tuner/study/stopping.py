"""Says when no untried configuration is likely to be worth its trial; budgets and limits are not its business."""

import numpy as np

from tuner.study.portfolio import Portfolio

__all__ = ["StopRule"]

LEAST_TRIALS = 20
GAIN = 0.01
CHANCE = 0.05
IN_A_ROW = 5
LIKELY = 200
DRAWS = 400


class StopRule:
    """Stops when P(any open row gains more than 1%) stays under 5%.

    The joint chance of the likeliest rows is taken from draws of the posterior, that of the others is bounded by its
    sum.
    """

    def __init__(self) -> None:
        self.in_a_row = 0
        self._seen = 0

    def reason(self, portfolio: Portfolio) -> str | None:
        """Return why to stop, None to go on; asked once after every trial."""
        n = len(portfolio.trials.tried)
        if n < max(LEAST_TRIALS, 2 * portfolio.table.n_dims):
            return None
        if n != self._seen:
            self._seen = n
            self.in_a_row = self.in_a_row + 1 if chance_of_gain(portfolio) < CHANCE else 0
        if self.in_a_row < IN_A_ROW:
            return None
        return f"no untried configuration is likely to gain {GAIN:.0%} (chance under {CHANCE:.0%})"


def chance_of_gain(portfolio: Portfolio, gain: float = GAIN) -> float:
    """Return the chance that any open row is better than the incumbent by more than `gain` (log-ratio)."""
    from scipy.special import ndtr

    posterior, best = portfolio.posterior(), portfolio.incumbent()
    if posterior is None or best is None:
        return 1.0
    rows = np.flatnonzero(portfolio.trials.open_rows())
    if not len(rows):
        return 0.0
    chances = ndtr((best[1] - gain - posterior.mean[rows]) / posterior.sd[rows])
    order = np.argsort(-chances, kind="stable")
    likely, rest = rows[order[:LIKELY]], chances[order[LIKELY:]]
    draws = portfolio.gaussian.draw(np.concatenate([[best[0]], likely]), DRAWS, np.random.default_rng(0))
    joint = float(np.mean(draws[:, 1:].min(axis=1) < draws[:, 0] - gain))
    return min(1.0, joint + float(rest.sum()))
