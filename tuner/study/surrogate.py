"""A Gaussian process over coded points: main effects plus one product term, noise known per trial; it chooses nothing.

The covariance is c² + Σ a_d² k_d + p² Π (1 - q_d + q_d k_d) + r² δ with q_d = a_d² / (a_d² + τ²): a parameter takes
part in interactions as far as it has an effect of its own (effect heredity; Chipman 1996), and r is what a point has of
its own. The a_d, p, τ and r have log-normal priors and are fitted to the marginal likelihood (Rasmussen & Williams
2006, 5.4.1). Values are natural logarithms.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from tuner.study.encoding import PointTable

__all__ = ["Gaussian", "Posterior"]

PRODUCT, HEREDITY, REST = 0.10, 0.10, 0.01
PRIOR_SD = 1.0
CONSTANT = 1.0
LENGTHS = (0.25, 0.7)
MOST_SHARE = 0.98
"""Largest q_d, so that logarithms of likeness stay finite."""


@dataclass(frozen=True)
class Posterior:
    """Mean and standard deviation of the noise-free value by row."""

    mean: np.ndarray
    sd: np.ndarray


class Gaussian:
    """The process on one table.

    Args:
        table: May grow between fits.
    """

    def __init__(self, table: PointTable) -> None:
        self.table = table
        columns = table.columns
        self._prior = np.log([*(column.expected for column in columns), PRODUCT, HEREDITY, REST])
        self.theta = self._prior.copy()
        self.length = LENGTHS[0]
        self._likeness = {length: [column.likeness(length) for column in columns] for length in LENGTHS}
        self._rows = np.zeros(0, dtype=np.int64)
        self._factor = np.zeros((0, 0))
        self._weights = np.zeros(0)
        self._level = 0.0

    def fit(self, rows: np.ndarray, values: np.ndarray, noise: np.ndarray, *, steps: int = 20) -> None:
        """Condition on trials.

        Args:
            rows: Rows of the table.
            values: ln(candidate / anchor).
            noise: Variances of `values`.
            steps: Most steps of the optimiser; 0 keeps the hyper-parameters.
        """
        from scipy.linalg import cho_factor, cho_solve
        from scipy.optimize import minimize

        self._rows = rows
        self._level = float(np.mean(values))
        centred = values - self._level
        if steps and len(rows) > 2:  # noqa: PLR2004 - fewer say nothing about effects
            best = np.inf
            for length in LENGTHS if len(rows) % 5 == 0 else (self.length,):
                slices = self._slices(length)
                loss = partial(_loss, slices=slices, values=centred, noise=noise, prior=self._prior)
                found = minimize(loss, self.theta, jac=True, method="L-BFGS-B", options={"maxiter": steps})
                if found.fun < best:
                    best, self.length, theta = float(found.fun), length, found.x
            self.theta = theta
        covariance = _covariance(self.theta, self._slices(self.length))[0] + np.diag(noise + self._rest)
        self._factor = np.linalg.cholesky(covariance)
        self._weights = cho_solve(cho_factor(covariance, lower=True), centred)

    def predict(self, rows: np.ndarray | None = None) -> Posterior:
        """Return the posterior at rows, None for all."""
        from scipy.linalg import solve_triangular

        cross = self._cross(rows)
        mean = cross @ self._weights + self._level
        half = solve_triangular(self._factor, cross.T, lower=True, check_finite=False)
        variance = self._own_variance() - np.einsum("ij,ij->j", half, half)
        return Posterior(mean, np.sqrt(np.maximum(variance, 1e-10)))

    def draw(self, rows: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
        """Return `n` joint draws of the noise-free values at rows (n by rows)."""
        from scipy.linalg import solve_triangular

        cross = self._cross(rows)
        half = solve_triangular(self._factor, cross.T, lower=True)
        covariance = self._between(rows, rows) - half.T @ half
        covariance[np.diag_indices_from(covariance)] += self._rest + 1e-8
        factor = np.linalg.cholesky(covariance)
        mean = cross @ self._weights + self._level
        found: np.ndarray = mean + rng.standard_normal((n, len(rows))) @ factor.T
        return found

    def main_effects(self) -> np.ndarray:
        """Return the fitted standard deviation a_d of every column's own effect."""
        found: np.ndarray = np.exp(self.theta[:-3])
        return found

    def column_means(self, column: int) -> np.ndarray:
        """Return the posterior mean of a column's own effect by code (its additive part alone)."""
        likeness = self._likeness[self.length][column]
        cross = likeness[:, self.table.codes[self._rows, column]]
        found: np.ndarray = np.exp(2 * self.theta[column]) * cross @ self._weights
        return found

    def _slices(self, length: float) -> np.ndarray:
        """Return the likeness of the trials by column (columns by trials by trials)."""
        codes = self.table.codes[self._rows]
        return np.array(
            [k[np.ix_(codes[:, d], codes[:, d])] for d, k in enumerate(self._likeness[length])], dtype=float
        )

    @property
    def _rest(self) -> float:
        """Variance of what a point has of its own."""
        return float(np.exp(2 * self.theta[-1]))

    def _cross(self, rows: np.ndarray | None) -> np.ndarray:
        """Return the covariance of rows with the trials."""
        found = self._between(rows, self._rows)
        if rows is None:
            found[self._rows, np.arange(len(self._rows))] += self._rest
        else:
            found += self._rest * (rows[:, None] == self._rows[None, :])
        return found

    def _between(self, rows: np.ndarray | None, others: np.ndarray) -> np.ndarray:
        """Return the covariance of rows with others, through one matrix product for each term."""
        one_hot = self.table.one_hot if rows is None else self.table.one_hot[rows]
        main, heredity = np.exp(2 * self.theta[:-3]), np.exp(2 * self.theta[-2])
        share = np.minimum(main / (main + heredity), MOST_SHARE)
        added, multiplied = [], []
        for d, likeness in enumerate(self._likeness[self.length]):
            seen = likeness[:, self.table.codes[others, d]]
            added.append(main[d] * seen)
            multiplied.append(np.log(1 - share[d] + share[d] * seen))
        total = one_hot @ np.concatenate(added)
        product = np.exp(one_hot @ np.concatenate(multiplied))
        found: np.ndarray = total + np.exp(2 * self.theta[-3]) * product + CONSTANT**2
        return found

    def _own_variance(self) -> float:
        return float(np.exp(2 * self.theta[:-3]).sum() + np.exp(2 * self.theta[-3]) + CONSTANT**2 + self._rest)


def _covariance(theta: np.ndarray, slices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the covariance of the trials, its product term, the factors of that, and the shares q_d."""
    main, heredity = np.exp(2 * theta[:-3]), np.exp(2 * theta[-2])
    share = np.minimum(main / (main + heredity), MOST_SHARE)
    factors = 1 + share[:, None, None] * (slices - 1)
    product = np.exp(2 * theta[-3]) * factors.prod(axis=0)
    return np.tensordot(main, slices, axes=1) + product + CONSTANT**2, product, factors, share


def _loss(
    theta: np.ndarray, *, slices: np.ndarray, values: np.ndarray, noise: np.ndarray, prior: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the negative log posterior of the hyper-parameters and its gradient."""
    from scipy.linalg import lapack

    covariance, product, factors, share = _covariance(theta, slices)
    rest = np.exp(2 * theta[-1])
    covariance[np.diag_indices_from(covariance)] += noise + rest
    factor, failed = lapack.dpotrf(covariance, lower=1)
    if failed:
        return 1e10, np.zeros_like(theta)
    inverse, _ = lapack.dpotri(factor, lower=1)
    inverse = np.tril(inverse) + np.tril(inverse, -1).T
    weights = inverse @ values
    off = (theta - prior) / PRIOR_SD
    loss = 0.5 * values @ weights + np.log(np.diag(factor)).sum() + 0.5 * off @ off
    pull = inverse - np.outer(weights, weights)
    slope = np.where(share < MOST_SHARE, 2 * share * (1 - share), 0.0)
    through = np.tensordot((slices - 1) / factors, product * pull, axes=2) * slope
    main = 2 * np.exp(2 * theta[:-3]) * np.tensordot(slices, pull, axes=2)
    gradient = (
        0.5 * np.array([*(main + through), 2 * np.sum(product * pull), -through.sum(), 2 * rest * np.trace(pull)])
        + off / PRIOR_SD
    )
    return float(loss), gradient
