"""The exact leakage in one formula (F1), in arrays: what `_walk.py` computes fast.

Only the first release on a side of the secret tells anything (docs/proofs/F1-first-release.md).
With the paper's symbols, walking away from the private record X_p:

    P_t  (k, k)  Pr(X_t = j | X_{t−1} = i), forwards in time on the right, by Bayes on the left
    q_t  (k,)    Pr(Y_t = ⊥ | X_t = j), the redaction probabilities of record t
    V_t  (k, k)  Pr(nothing released up to t, X_t = j | X_p = x), row x, column j; V_p = identity
    U_t  (k, k)  Pr(nothing released before t, X_t = j | X_p = x)

    U_t = V_{t−1}·P_t,    V_t = U_t·diag(q_t)

The outputs of the side are "first release: j at t", with probabilities U_t·diag(1 − q_t), and
"nothing to the end", with the row sums of the last V. The directional leakage left(x, x′) or
right(x, x′) is the largest log-ratio of row x over row x′ among them. Both sides together (F2):

    𝓛(X_p → Y) = max over x, x′ of left(x, x′) + right(x, x′)

which is `leakage.combine`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from offrecord.models.base import Floats


def directional_leakage(kernels: ArrayLike, redaction: ArrayLike) -> Floats:
    """(k, k) directional leakage of one side, F1 as it is written; O(m·k³).

    kernels: (m, k, k) or (1, k, k), redaction: (m, k), nearest record first, up to the chain's end.
    Entry [x, x′] is about the secret's values x and x′; it counts if both can occur.
    """
    q = np.asarray(redaction, dtype=np.float64)
    m, k = q.shape
    P = np.broadcast_to(np.asarray(kernels, dtype=np.float64), (m, k, k))
    V = np.eye(k)
    worst = np.zeros((k, k))  # some output is at least as likely under x as under x′ (F2)
    for t in range(m):
        U = V @ P[t]
        worst = np.maximum(worst, largest_log_ratios(U * (1.0 - q[t])))
        V = U * q[t]
        V = V / (V.max() or 1.0)  # a factor common to all of V cancels in every ratio
    return np.maximum(worst, largest_log_ratios(V.sum(axis=1, keepdims=True)))


def largest_log_ratios(probabilities: Floats) -> Floats:
    """(k, k) the largest log-ratio of row x over row x′ of a (k, m) array, by column.

    An output that x cannot cause does not count for it; one that only x′ cannot is infinite.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(probabilities)
        ratios = logs[:, np.newaxis] - logs
    return np.asarray(np.where(probabilities[:, np.newaxis] > 0, ratios, -np.inf).max(axis=2))
