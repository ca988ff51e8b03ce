"""What a secret inside a cluster is told by an output at the cluster's end (O11).

Through a channel K an output within e^s tells at most log ρ, the largest ratio of
(K(x, A)·(e^s − 1) + 1) and (K(x′, A)·(e^s − 1) + 1) over x, x′ and sets A of values. A number ρ is
no smaller than all of these if (e^s − 1)·Σ max(0, K(x, y) − ρ·K(x′, y)) ≤ ρ − 1 for every x and x′:
as the best A holds the values that add to the sum. So ρ is found in floats, enlarged a little, and
proven in balls.
"""

from __future__ import annotations

from functools import cache

import flint
import numpy as np

from offrecord.release.certificate import Model
from offrecord.verify.balls import Ball, Matrix, ball, double, is_zero, precision
from offrecord.verify.chain import Chain, chain_of

_BITS = 192
_ENLARGED = 1e-11  # relative: far more than floats miss, far less than what is left of ε
_FAR = 4096  # steps beyond which a channel is no longer looked at: it tells no more than that


class Channels:
    """Of a stationary model of order 1 that stands alone."""

    def __init__(self, model: Model) -> None:
        with precision(_BITS):
            chain = chain_of(model, 2)
            often = chain.marginal(0)
            kept = [state for state in range(chain.k) if not is_zero(often[state])]
            self._kernels = [
                _among(kernel, kept) for kernel in (chain.backward(1), _forward(chain))
            ]
        self._told = cache(self._tell)
        self._power = cache(self._raised)

    def keeps(
        self, secrets: list[tuple[int, int]], budgets: tuple[float, float], most: float
    ) -> bool:
        """Whether all of some secrets are proven to be told no more than `most` from so many steps
        to the left and right end of their cluster.
        """
        with precision(_BITS):
            limit = ball(double(most)).exp()
            for away in secrets:
                left, right = (
                    self._told(side, min(steps, _FAR), budgets[side])
                    for side, steps in enumerate(away)
                )
                if left is None or right is None or not left * right <= limit:
                    return False
        return True

    def _raised(self, side: int, steps: int) -> Matrix:
        if steps == 0:
            size = self._kernels[side].nrows()
            return flint.arb_mat([[int(i == j) for j in range(size)] for i in range(size)])
        half = self._power(side, steps // 2)
        square = half * half
        return square * self._kernels[side] if steps % 2 else square

    def _tell(self, side: int, steps: int, budget: float) -> Ball | None:
        """A ratio that is proven to be none too small; None if that fails."""
        channel = self._power(side, steps)
        size = channel.nrows()
        floats = np.array([[float(channel[i, j].mid()) for j in range(size)] for i in range(size)])
        found = ball(double(_largest(floats, np.expm1(budget)) * (1 + _ENLARGED)))
        gain = ball(double(budget)).exp() - 1
        for x in range(size):
            for other in range(size):
                total = flint.arb(0)
                for y in range(size):
                    more = channel[x, y] - found * channel[other, y]
                    total += more.max(flint.arb(0))
                if not total * gain <= found - 1:
                    return None
        return found


def _forward(chain: Chain) -> Matrix:
    return chain.forward(0)


def _among(kernel: Matrix, kept: list[int]) -> Matrix:
    return flint.arb_mat([[kernel[i, j] for j in kept] for i in kept])


def _largest(channel: np.ndarray[tuple[int, int], np.dtype[np.float64]], gain: float) -> float:
    """The largest ratio in floats: sets of values by their ratios, the largest first."""
    best = 1.0
    for row in channel:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.where(channel > 0, row / channel, np.where(row > 0, np.inf, 0.0))
        order = np.argsort(-ratios, axis=1)
        above = np.cumsum(np.take_along_axis(np.broadcast_to(row, channel.shape), order, 1), axis=1)
        below = np.cumsum(np.take_along_axis(channel, order, 1), axis=1)
        best = max(best, float(((above * gain + 1) / (below * gain + 1)).max()))
    return best
