"""The compiled walks behind F1: away from a secret, record by record, under "nothing released so
far".

Both walks carry Pr(nothing released, X_t = j | secret = x) for every x, and note at each record the
log-ratios of the values it can release. They stop as soon as no later record can add anything:
ratios of later outputs are averages of the ratios of the values still unreleased, so none exceeds
the largest of those (docs/proofs/F1-first-release.md).

rows: (m, k) redaction probabilities, one row for each stretch of equal records, lengths: (m,) how
many records each has. The walk visits rows[index], rows[index + step], … count of them; `opens`
says that a record follows that releases everything. log_kernels / kernels: (1, k, k) if every step
is alike, else one for each step of the walk.

Returned: worst (k, k) the largest log-ratio of row x over row x', the distance and the value at
which it is met (value −1: nothing is released to the chain's end), and a bound on what rounding may
have changed in any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

_F = TypeVar("_F", bound=Callable[..., Any])

_UNIT = 2.0**-53
_LOOK = 8  # how often the walk for two values looks whether it may stop
_JUMP = 8  # stretches of always-redacted records longer than this are crossed by one matrix power
_SMALL, _LOG_SMALL = (
    1e-140,
    -322.0,
)  # the product of two such numbers is far from the smallest float


def compiled(function: _F) -> _F:
    """Compile on first call and keep the machine code beside the source for later processes."""
    return cast(_F, numba.njit(cache=True, error_model="numpy")(function))


@compiled
def _always(row: Any) -> bool:
    for q in row:
        if q != 1.0:
            return False
    return True


@compiled
def _worth_walking(rows: Any, index: int, step: int, count: int, opens: bool) -> int:
    """How many stretches to walk: always-redacted records at the chain's end change no row sum."""
    while not opens and count > 0 and _always(rows[index + step * (count - 1)]):
        count -= 1
    return count


@compiled
def _power(kernel: Any, exponent: int) -> Any:
    result = np.eye(kernel.shape[0])
    base = kernel.copy()
    while exponent > 0:
        if exponent & 1:
            result = _product(result, base)
        exponent >>= 1
        if exponent > 0:
            base = _product(base, base)
    return result


@compiled
def _product(a: Any, b: Any) -> Any:
    k = a.shape[0]
    out = np.zeros((k, k))
    for x in range(k):
        for i in range(k):
            weight = a[x, i]
            if weight != 0.0:
                for j in range(k):
                    out[x, j] += weight * b[i, j]
    return out


@compiled
def binary(
    kernels: Any, rows: Any, lengths: Any, index: int, step: int, count: int, opens: bool
) -> Any:
    """The walk for two values in plain products: a few nanoseconds a record.

    Returns ok=False where numbers became too small for it; `general` then serves.
    """
    high, high_at, high_value = 0.0, 0, -1  # largest ratio of row 0 over row 1
    low, low_at, low_value = np.inf, 0, -1  # smallest
    ok = True
    count = _worth_walking(rows, index, step, count, opens)
    one_kernel = kernels.shape[0] == 1
    p00, p01, p10, p11 = kernels[0, 0, 0], kernels[0, 0, 1], kernels[0, 1, 0], kernels[0, 1, 1]
    for p in kernels.flat:
        if 0.0 < p < 1e-50:
            ok = False
    powers = (
        one_kernel and np.min(kernels[0]) > 0.0
    )  # no entry of a power is then smaller than the kernel's smallest
    v00, v01, v10, v11 = 1.0, 0.0, 0.0, 1.0
    partial = False
    distance = 0
    alive = True
    for run in range(count + 1):
        if run == count:
            if not opens:
                break
            q0, q1, length = 0.0, 0.0, 1
        else:
            at = index + step * run
            q0, q1, length = rows[at, 0], rows[at, 1], lengths[at]
        if (0.0 < q0 < 1e-50) or (0.0 < q1 < 1e-50):
            ok = False
        if powers and length > _JUMP and q0 == 1.0 and q1 == 1.0:
            jump = _power(kernels[0], length)
            v00, v01 = v00 * jump[0, 0] + v01 * jump[1, 0], v00 * jump[0, 1] + v01 * jump[1, 1]
            v10, v11 = v10 * jump[0, 0] + v11 * jump[1, 0], v10 * jump[0, 1] + v11 * jump[1, 1]
            distance += length
            length = 0
        for _ in range(length):
            if not one_kernel:
                p00, p01 = kernels[distance, 0, 0], kernels[distance, 0, 1]
                p10, p11 = kernels[distance, 1, 0], kernels[distance, 1, 1]
            distance += 1
            u00, u01 = v00 * p00 + v01 * p10, v00 * p01 + v01 * p11
            u10, u11 = v10 * p00 + v11 * p10, v10 * p01 + v11 * p11
            if q0 < 1.0 and (u00 > 0.0 or u10 > 0.0):
                ratio = u00 / u10
                if ratio > high:
                    high, high_at, high_value = ratio, distance, 0
                if ratio < low:
                    low, low_at, low_value = ratio, distance, 0
            if q1 < 1.0 and (u01 > 0.0 or u11 > 0.0):
                ratio = u01 / u11
                if ratio > high:
                    high, high_at, high_value = ratio, distance, 1
                if ratio < low:
                    low, low_at, low_value = ratio, distance, 1
            v00, v01, v10, v11 = u00 * q0, u01 * q1, u10 * q0, u11 * q1
            smallest, largest = min(min(v00, v01), min(v10, v11)), max(max(v00, v01), max(v10, v11))
            if smallest < 1e-200 and (
                (0 < v00 < 1e-200) or (0 < v01 < 1e-200) or (0 < v10 < 1e-200) or (0 < v11 < 1e-200)
            ):
                ok = False
                break
            if largest < 1e-100 and largest > 0.0:
                v00, v01, v10, v11 = v00 / largest, v01 / largest, v10 / largest, v11 / largest
            if q0 < 1.0 or q1 < 1.0:
                partial = True
                if distance % _LOOK == 1 or largest == 0.0:
                    # later ratios lie between those of the two columns; an empty column is NaN, for
                    # which no comparison holds
                    ratio0, ratio1 = v00 / v10, v01 / v11
                    if not (ratio0 > high or ratio1 > high or ratio0 < low or ratio1 < low):
                        alive = False
                        break
        if not alive or not ok:
            break
    if alive and partial and ok:
        sum0, sum1 = v00 + v01, v10 + v11
        if sum0 > 0.0 or sum1 > 0.0:
            if sum0 / sum1 > high:
                high, high_at, high_value = sum0 / sum1, distance, -1
            if sum0 / sum1 < low:
                low, low_at, low_value = sum0 / sum1, distance, -1
    return (
        ok,
        high,
        high_at,
        high_value,
        low,
        low_at,
        low_value,
        (8.0 * _UNIT * (distance + 1) if partial else 0.0),
    )


@compiled
def _advance(
    weights: Any, logs: Any, log_kernel: Any, support: Any, fresh: Any, fresh_logs: Any
) -> Any:
    """One step in column-scaled form: Pr(·, X = j | x) = weights[x, j]·exp(logs[j]), each column's
    largest weight being 1.

    A factor common to a column cancels in every ratio, so neither tiny probabilities nor long walks
    lose anything. Returns the relative error the step may have added to an entry, in units of
    rounding; −1 where ratios became too large for plain numbers, and `_advance_logs` serves.
    """
    k = weights.shape[0]
    largest = 0.0
    small = False
    for j in range(k):
        top = -np.inf
        for i in range(k):
            term = logs[i] + log_kernel[i, j]
            top = max(top, term)
        fresh_logs[j] = top
        for x in range(k):
            fresh[x, j] = 0.0
        if top == -np.inf:
            continue
        for i in range(k):
            term = logs[i] + log_kernel[i, j]
            if term > -np.inf:
                factor = np.exp(term - top)
                if factor < _SMALL:
                    small = True
                if factor > 0.0:
                    size = abs(logs[i]) + abs(log_kernel[i, j]) + abs(top)
                    largest = max(largest, size)
                for x in range(k):
                    fresh[x, j] += weights[x, i] * factor
        peak = 0.0
        for x in range(k):
            if support[x]:
                peak = max(peak, fresh[x, j])
        if peak == 0.0:
            fresh_logs[j] = -np.inf
            for x in range(k):
                fresh[x, j] = 0.0
        else:
            fresh_logs[j] = top + np.log(peak)
            for x in range(k):
                fresh[x, j] /= peak
                if fresh[x, j] < _SMALL and fresh[x, j] > 0.0 and support[x]:
                    small = True
    return -1.0 if small else 2.0 * (k + 4.0 + 3.0 * largest)


@compiled
def _advance_logs(
    weights: Any, logs: Any, log_kernel: Any, support: Any, fresh: Any, fresh_logs: Any
) -> Any:
    """The same step with logarithms of the weights, whatever their ratios: k³ exponentials."""
    k = weights.shape[0]
    largest = 0.0
    for j in range(k):
        peak = -np.inf
        for x in range(k):
            fresh[x, j] = -np.inf
            if not support[x]:
                continue
            top = -np.inf
            for i in range(k):
                top = max(top, weights[x, i] + logs[i] + log_kernel[i, j])
            if top > -np.inf:
                total = 0.0
                for i in range(k):
                    term = weights[x, i] + logs[i] + log_kernel[i, j]
                    if term > -np.inf:
                        total += np.exp(term - top)
                        largest = max(
                            largest,
                            abs(weights[x, i]) + abs(logs[i]) + abs(log_kernel[i, j]) + abs(top),
                        )
                fresh[x, j] = top + np.log(total)
                peak = max(peak, fresh[x, j])
        fresh_logs[j] = peak
        if peak > -np.inf:
            for x in range(k):
                fresh[x, j] -= peak
    return 2.0 * (k + 8.0 + 6.0 * largest)


@compiled
def _note(
    logs: Any,
    fresh_logs: Any,
    support: Any,
    distance: int,
    row: Any,
    worst: Any,
    at: Any,
    value: Any,
) -> bool:
    """Enter what this record can release into worst; True if a later record could still
    exceed it.
    """
    k = worst.shape[0]
    unsure = False
    for j in range(k):
        if fresh_logs[j] == -np.inf:
            continue
        if row[j] == 1.0:
            unsure = True
            continue
        for x in range(k):
            if support[x] and logs[x, j] > -np.inf:
                for other in range(k):
                    if (
                        support[other]
                        and other != x
                        and logs[x, j] - logs[other, j] > worst[x, other]
                    ):
                        worst[x, other] = logs[x, j] - logs[other, j]
                        at[x, other], value[x, other] = distance, j
    if not unsure:  # every value that occurs here may be released, so no later ratio is larger
        return False
    for j in range(k):
        if fresh_logs[j] > -np.inf and row[j] == 1.0:
            for x in range(k):
                if support[x] and logs[x, j] > -np.inf:
                    for other in range(k):
                        if (
                            support[other]
                            and other != x
                            and logs[x, j] - logs[other, j] > worst[x, other]
                        ):
                            return True
    return False


@compiled
def general(
    log_kernels: Any,
    support: Any,
    rows: Any,
    lengths: Any,
    index: int,
    step: int,
    count: int,
    opens: bool,
    careful: bool,
) -> Any:
    """The walk for any number of values, k² exponentials and O(k³) products a record; if careful,
    k³ exponentials.

    Returns ok=False where ratios became too large for it; careful, it always serves.
    """
    k = support.shape[0]
    worst = np.full((k, k), -np.inf)
    at = np.zeros((k, k), dtype=np.int64)
    value = np.full((k, k), -1, dtype=np.int64)
    count = _worth_walking(rows, index, step, count, opens)
    one_kernel = log_kernels.shape[0] == 1
    powers = (
        one_kernel and np.min(log_kernels[0]) > -200.0
    )  # every entry of every power is then as large
    weights, logs = np.log(np.eye(k)) if careful else np.eye(k), np.zeros(k)
    fresh, fresh_logs = np.empty((k, k)), np.empty(k)
    zero = np.zeros(k)
    ok = True
    error = 4.0
    partial = False
    distance = 0
    alive = True
    for run in range(count + 1):
        if run == count:
            if not opens:
                break
            row, length = zero, 1
        else:
            row, length = rows[index + step * run], lengths[index + step * run]
        if powers and length > _JUMP and _always(row):
            jump = np.log(_power(np.exp(log_kernels[0]), length))
            if careful:
                added = _advance_logs(weights, logs, jump, support, fresh, fresh_logs)
            else:
                added = _advance(weights, logs, jump, support, fresh, fresh_logs)
            ok = added >= 0.0
            error += added + 2.0 * (k + 4.0) * length
            weights, fresh = fresh, weights
            logs, fresh_logs = fresh_logs, logs
            distance += length
            length = 0
        for _ in range(length if ok else 0):
            kernel = log_kernels[0 if one_kernel else distance]
            if careful:
                added = _advance_logs(weights, logs, kernel, support, fresh, fresh_logs)
            else:
                added = _advance(weights, logs, kernel, support, fresh, fresh_logs)
            if added < 0.0:
                ok = False
                break
            error += added
            distance += 1
            more = _note(
                fresh if careful else np.log(fresh),
                fresh_logs,
                support,
                distance,
                row,
                worst,
                at,
                value,
            )
            weights, fresh = fresh, weights
            top = -np.inf
            for j in range(k):
                partial = partial or row[j] < 1.0
                logs[j] = fresh_logs[j] + np.log(row[j])
                top = max(top, logs[j])
            if top == -np.inf or not more:
                alive = False
                break
            for j in range(k):
                logs[j] -= top
        if not alive or not ok:
            break
    if alive and partial and ok:
        sums, largest = np.full(k, -np.inf), 0.0
        for x in range(k):
            if not support[x]:
                continue
            top = 0.0
            if careful:
                top = -np.inf
                for j in range(k):
                    top = max(top, weights[x, j] + logs[j])
            total = 0.0
            for j in range(k):
                if logs[j] > -np.inf and top > -np.inf:
                    if careful:
                        total += np.exp(weights[x, j] + logs[j] - top)
                        if weights[x, j] > -np.inf:
                            largest = max(largest, abs(weights[x, j]) + abs(logs[j]) + abs(top))
                    else:
                        ok = ok and logs[j] > _LOG_SMALL
                        total += weights[x, j] * np.exp(logs[j])
            if total > 0.0:
                sums[x] = top + np.log(total)
        error += 12.0 * largest
        for x in range(k):
            for other in range(k):
                if support[x] and support[other] and x != other and sums[x] > -np.inf:
                    ratio = sums[x] - sums[other]
                    if ratio > worst[x, other]:
                        worst[x, other], at[x, other], value[x, other] = ratio, distance, -1
    return ok, worst, at, value, (error * _UNIT if partial else 0.0)


@compiled
def likelihoods(log_kernels: Any, support: Any, count: int, careful: bool) -> Any:
    """(count, k, k) log Pr(X_{p±d} = j | secret = x) less a constant for each column, d = 1 …
    count.

    Everything before is redacted. The constant makes the largest entry of a column 0; a column of
    −∞ is a value that record never takes. Returns with it ok=False where ratios became too large;
    careful, it always serves.
    """
    k = support.shape[0]
    weights, logs = np.log(np.eye(k)) if careful else np.eye(k), np.zeros(k)
    fresh, fresh_logs = np.empty((k, k)), np.empty(k)
    out = np.empty((count, k, k))
    for d in range(count):
        kernel = log_kernels[0 if log_kernels.shape[0] == 1 else d]
        if careful:
            _advance_logs(weights, logs, kernel, support, fresh, fresh_logs)
        elif _advance(weights, logs, kernel, support, fresh, fresh_logs) < 0.0:
            return False, out
        weights, fresh = fresh, weights
        logs, fresh_logs = fresh_logs, logs
        for x in range(k):
            for j in range(k):
                out[d, x, j] = (
                    -np.inf
                    if not support[x]
                    else weights[x, j]
                    if careful
                    else np.log(weights[x, j])
                )
    return True, out


@compiled
def log_gradients(kernels: Any, probabilities: Any, reached: Any, t: int, onward: Any) -> Any:
    """(k, m, t, k) derivatives of log Pr(an output | x) by the redaction probabilities met before
    it.

    kernels, probabilities, reached: (T, k, k), (T, k), (T, k, k) of a walk; onward: (k, m), for m
    outputs the probability of each from every value one step before distance t. The derivative by
    q_s[i] is reached_s[x, i]·onward_s[i] over its sum with q_s, whatever the scale of either.
    """
    k, outputs = onward.shape
    result = np.zeros((k, outputs, t, k))
    onward = onward.copy()
    for s in range(t - 1, -1, -1):
        for m in range(outputs):
            for x in range(k):
                total = 0.0
                for i in range(k):
                    total += reached[s, x, i] * probabilities[s, i] * onward[i, m]
                if total > 0.0:
                    for i in range(k):
                        result[x, m, s, i] = reached[s, x, i] * onward[i, m] / total
        fresh = np.zeros((k, outputs))
        for m in range(outputs):
            largest = 0.0
            for i in range(k):
                for j in range(k):
                    fresh[i, m] += kernels[s, i, j] * probabilities[s, j] * onward[j, m]
                largest = max(largest, fresh[i, m])
            if largest > 0.0:
                for i in range(k):
                    fresh[i, m] /= largest
        onward = fresh
    return result
