"""The same formula as first_release.py, compiled, for long walks and any probabilities (F1).

Each walk goes away from a secret, record by record, and carries Pr(nothing released so far,
X_t = j | secret = x) for every x: V_t of first_release.py. At each record it notes the log-ratios
of the values that the record can release. What is faster or safer than the array form:

- A walk stops as soon as no later record can add anything: ratios of later outputs are averages of
  the ratios of the values still unreleased, so none exceeds the largest of those.
- Long stretches of always-redacted records are crossed by one matrix power.
- `binary`, for two values, keeps V in four plain numbers. `general`, for any k, keeps it as weights
  and a logarithm for each column, so that small probabilities are not lost; where even the weights
  of one column are too far apart for plain numbers, it is asked again to be `careful` and keeps
  logarithms of the weights too, which costs k times as many exponentials.
- Each returns a bound on what rounding may have changed, derived line by line in
  docs/proofs/rounding.md.

A walk is given what it visits as `walked`: (rows, lengths, index, step, count, opens). rows: (m, k)
redaction probabilities, one row for each stretch of equal records, lengths: (m,) how many records
each has. It visits rows[index], rows[index + step], … count of them; `opens` says that a record
follows that releases everything. log_kernels / kernels: (1, k, k) if every step is alike, else one
for each step of the walk.

Returned: worst (k, k) the largest log-ratio of row x over row x', the distance and the value at
which it is met (value −1: nothing is released to the chain's end), and the bound on rounding.

Inside the loops x and `other` are values of the secret, i and j values of a record before and after
a step; u, v, p and q are entries of U, V, P and of a redaction row.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from offrecord.theory._compiling import compiled, inlined

_LOOK = 8  # how often the walk for two values looks whether it may stop
_JUMP = 8  # stretches of always-redacted records longer than this are crossed by one matrix power

# ---- rounding, in units of 2^-53 (docs/proofs/rounding.md derives each)

_UNIT = 2.0**-53
#: binary: a step adds this much to a log-ratio: a product, a sum, a redaction probability and a
#: rescaling (or the kernel's own rounding), in both of its entries.
_BINARY_STEP = 8.0
#: general: both entries of a log-ratio have what a step adds to one.
_BOTH = 2.0
#: general: a step adds k for products and sums, this for an exponential and a division, and the
#: next for each unit of the exponents that were added and subtracted.
_STEP, _STEP_EXPONENTS = 4.0, 3.0
#: The same if careful: every weight is an exponent too.
_CAREFUL_STEP, _CAREFUL_EXPONENTS = 8.0, 6.0
#: general: the first logarithms, and in both entries the exponents of the sums at the chain's end.
_FIRST, _END_EXPONENTS = 4.0, 12.0

# ---- from where on plain numbers do not serve

#: binary: entries of kernels and redaction rows, and of V, that it takes. A product of the least
#: entry of V with one of each, 1e-300, is still a normal float, so nothing is lost unseen.
_LEAST_FACTOR, _LEAST_ENTRY = 1e-50, 1e-200
_RESCALE = 1e-100  # binary: V is scaled up when its largest entry falls below
#: general: weights and factors it takes; the product of two is far from the smallest float.
_SMALL, _LOG_SMALL = 1e-140, -322.0
#: general: the logarithm of the smallest kernel entry whose powers are taken in plain numbers.
_LEAST_LOG_POWER = -200.0


def visited(walked: Any) -> int:
    """How many records a walk may visit."""
    _, lengths, index, step, count, opens = walked
    if count == 0:
        return int(opens)
    ends = index, index + step * (count - 1)
    return int(lengths[min(ends) : max(ends) + 1].sum()) + int(opens)


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
    """By repeated squaring: its error is charged as that of `exponent` steps."""
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


# ---- two values


@compiled
def binary(kernels: Any, walked: Any) -> Any:
    """The walk for two values in plain products: a few nanoseconds a record.

    Returns ok=False where numbers became too small for it; `general` then serves. `met` holds the
    largest ratio of row 0 over row 1 with its distance and value, then the smallest: one for each
    direction.
    """
    rows, lengths, index, step, count, opens = walked
    count = _worth_walking(rows, index, step, count, opens)
    # With a positive kernel no entry of a power is smaller than the kernel's smallest, so a jump
    # makes nothing smaller than a step does.
    powers = kernels.shape[0] == 1 and np.min(kernels[0]) > 0.0
    ok, alive, partial = True, True, False
    for entry in kernels.flat:
        ok = ok and not 0.0 < entry < _LEAST_FACTOR
    p = _four(kernels[0])
    v = (1.0, 0.0, 0.0, 1.0)
    met = (0.0, 0, -1, np.inf, 0, -1)
    distance = 0
    for run in range(count + 1):
        q0, q1, length = 0.0, 0.0, int(opens)  # the record that follows, if one does
        if run < count:
            at = index + step * run
            q0, q1, length = rows[at, 0], rows[at, 1], lengths[at]
        if powers and length > _JUMP and q0 == 1.0 and q1 == 1.0:
            v = _times(v, _four(_power(kernels[0], length)))
            distance += length
            length = 0
        ok = ok and not (0.0 < q0 < _LEAST_FACTOR or 0.0 < q1 < _LEAST_FACTOR)
        if ok and length > 0:
            partial = partial or q0 < 1.0 or q1 < 1.0
            ok, alive, v, met, distance = _through(kernels, p, q0, q1, length, v, met, distance)
        if not (ok and alive):
            break
    if ok and alive and partial:
        met = _widened(met, v[0] + v[1], v[2] + v[3], distance, -1)
    return ok, met, (_BINARY_STEP * _UNIT * (distance + 1) if partial else 0.0)


@inlined
def _through(
    kernels: Any, p: Any, q0: float, q1: float, length: int, v: Any, met: Any, distance: int
) -> Any:
    """Walk over a stretch of equal records: U = V·P, note what they release, V = U·diag(q)."""
    for _ in range(length):
        if kernels.shape[0] > 1:
            p = _four(kernels[distance])
        distance += 1
        u = _times(v, p)
        if q0 < 1.0:
            met = _widened(met, u[0], u[2], distance, 0)
        if q1 < 1.0:
            met = _widened(met, u[1], u[3], distance, 1)
        v = (u[0] * q0, u[1] * q1, u[2] * q0, u[3] * q1)
        largest = max(max(v[0], v[1]), max(v[2], v[3]))
        if _any_below(v, _LEAST_ENTRY):
            return False, True, v, met, distance
        if 0.0 < largest < _RESCALE:
            # By one factor for all: row by row, the ratio would be lost.
            v = (v[0] / largest, v[1] / largest, v[2] / largest, v[3] / largest)
        # Looking costs two divisions, so not after every record; but an empty V ends the walk.
        looks = distance % _LOOK == 1 or largest == 0.0
        if looks and (q0 < 1.0 or q1 < 1.0) and not _could_widen(met, v):
            return True, False, v, met, distance
    return True, True, v, met, distance


@inlined
def _four(kernel: Any) -> Any:
    return kernel[0, 0], kernel[0, 1], kernel[1, 0], kernel[1, 1]


@inlined
def _times(v: Any, p: Any) -> Any:
    """V·P, row by row."""
    return (
        v[0] * p[0] + v[1] * p[2],
        v[0] * p[1] + v[1] * p[3],
        v[2] * p[0] + v[3] * p[2],
        v[2] * p[1] + v[3] * p[3],
    )


@inlined
def _any_below(v: Any, least: float) -> Any:
    """Whether an entry is positive and below `least`; most often the first question settles it."""
    if min(min(v[0], v[1]), min(v[2], v[3])) >= least:
        return False
    return (0 < v[0] < least) or (0 < v[1] < least) or (0 < v[2] < least) or (0 < v[3] < least)


@inlined
def _widened(met: Any, first: float, second: float, distance: int, value: int) -> Any:
    """What is met, with an output of these probabilities under 0 and 1; 0 under both is none."""
    if not (first > 0.0 or second > 0.0):
        return met
    ratio = first / second
    high, high_at, high_value, low, low_at, low_value = met
    if ratio > high:
        high, high_at, high_value = ratio, distance, value
    if ratio < low:
        low, low_at, low_value = ratio, distance, value
    return high, high_at, high_value, low, low_at, low_value


@inlined
def _could_widen(met: Any, v: Any) -> Any:
    """Whether a later ratio may: it lies between those of the two columns.

    An empty column gives NaN, for which no comparison holds.
    """
    ratio0, ratio1 = v[0] / v[2], v[1] / v[3]
    return ratio0 > met[0] or ratio1 > met[0] or ratio0 < met[3] or ratio1 < met[3]


# ---- any number of values


@compiled
def general(log_kernels: Any, support: Any, walked: Any, careful: bool) -> Any:
    """The walk for any number of values: k² exponentials and O(k³) products a record.

    support: (k,) the values that the secret can take. Returns ok=False where ratios became too
    large for it; careful, with k³ exponentials, it always serves. One long loop: what it carries
    from step to step would be most of the arguments of any part of it.
    """
    rows, lengths, index, step, count, opens = walked
    k = support.shape[0]
    worst = np.full((k, k), -np.inf)
    at = np.zeros((k, k), dtype=np.int64)
    value = np.full((k, k), -1, dtype=np.int64)
    count = _worth_walking(rows, index, step, count, opens)
    one_kernel = log_kernels.shape[0] == 1
    powers = one_kernel and _least(log_kernels[0]) > _LEAST_LOG_POWER  # for all powers, as above
    weights, logs = _at_once(k, careful), np.zeros(k)
    fresh, fresh_logs = np.empty((k, k)), np.empty(k)
    zero = np.zeros(k)
    ok, alive, partial = True, True, False
    error = _FIRST
    distance = 0
    for run in range(count + 1):
        row, length = zero, int(opens)  # the record that follows, if one does
        if run < count:
            row, length = rows[index + step * run], lengths[index + step * run]
        always = _always(row)
        if powers and length > _JUMP and always:
            jump = _logs_of(_power(_exponentials_of(log_kernels[0]), length))
            added = _advance(careful, weights, logs, jump, support, fresh, fresh_logs)
            ok = added >= 0.0
            # the steps that the power stands for, and one for the logarithms before and after it
            error += added + _BOTH * (k + _STEP) * length
            weights, fresh = fresh, weights
            logs, fresh_logs = fresh_logs, logs
            distance += length
            length = 0
        for _ in range(length if ok else 0):
            kernel = log_kernels[0 if one_kernel else distance]
            added = _advance(careful, weights, logs, kernel, support, fresh, fresh_logs)
            ok = added >= 0.0
            if not ok:
                break
            error += added
            distance += 1
            partial = partial or not always
            ratios = fresh if careful else _logs_of(fresh)
            alive = _note(ratios, fresh_logs, support, distance, row, worst, at, value)
            weights, fresh = fresh, weights
            alive = _silenced(fresh_logs, row, logs) and alive
            if not alive:
                break
        if not (ok and alive):
            break
    if ok and alive and partial:
        ok, more = _note_end(careful, weights, logs, support, distance, worst, at, value)
        error += more
    return ok, worst, at, value, (error * _UNIT if partial else 0.0)


@inlined
def _log(number: float) -> Any:
    return math.log(number) if number > 0.0 else -np.inf


@compiled
def _logs_of(numbers: Any) -> Any:
    """(k, k) entry by entry: NumPy's own logarithms of arrays may differ in the last bit."""
    out = np.empty(numbers.shape)
    for x in range(numbers.shape[0]):
        for j in range(numbers.shape[1]):
            out[x, j] = _log(numbers[x, j])
    return out


@compiled
def _exponentials_of(numbers: Any) -> Any:
    """(k, k) as `_logs_of`."""
    out = np.empty(numbers.shape)
    for x in range(numbers.shape[0]):
        for j in range(numbers.shape[1]):
            out[x, j] = math.exp(numbers[x, j])
    return out


@inlined
def _least(numbers: Any) -> Any:
    least = np.inf
    for row in numbers:
        for number in row:
            least = min(least, number)
    return least


@compiled
def _at_once(k: int, careful: bool) -> Any:
    """The weights of the secret itself: each value is its own, in logarithms if careful."""
    weights = np.empty((k, k))
    for x in range(k):
        for j in range(k):
            weight = 1.0 if x == j else 0.0
            weights[x, j] = _log(weight) if careful else weight
    return weights


@compiled
def _advance(
    careful: bool,
    weights: Any,
    logs: Any,
    log_kernel: Any,
    support: Any,
    fresh: Any,
    fresh_logs: Any,
) -> Any:
    """One step, U = V·P, into fresh and fresh_logs.

    Returns what rounding may have added to a log-ratio, in units; −1 where ratios became too large
    for plain weights.
    """
    if careful:
        return _advance_logs(weights, logs, log_kernel, support, fresh, fresh_logs)
    return _advance_weights(weights, logs, log_kernel, support, fresh, fresh_logs)


@compiled
def _advance_weights(
    weights: Any, logs: Any, log_kernel: Any, support: Any, fresh: Any, fresh_logs: Any
) -> Any:
    """A step in column-scaled form: Pr(·, X = j | x) = weights[x, j]·exp(logs[j]).

    Each column's largest weight is 1. A factor common to a column cancels in every ratio, so
    neither tiny probabilities nor long walks lose anything.
    """
    k = weights.shape[0]
    largest = 0.0
    small = False
    for j in range(k):
        top = -np.inf
        for i in range(k):
            top = max(top, logs[i] + log_kernel[i, j])
        for x in range(k):
            fresh[x, j] = 0.0
        if top == -np.inf:
            fresh_logs[j] = -np.inf
            continue
        for i in range(k):
            term = logs[i] + log_kernel[i, j]
            if term > -np.inf:
                factor = math.exp(term - top)
                small = small or factor < _SMALL
                if factor > 0.0:  # the exponents that were added, for what rounding did to them
                    largest = max(largest, abs(logs[i]) + abs(log_kernel[i, j]) + abs(top))
                for x in range(k):
                    fresh[x, j] += weights[x, i] * factor
        peak, too_small = _scaled(fresh, j, support)
        small = small or too_small
        fresh_logs[j] = top + _log(peak)
    return -1.0 if small else _BOTH * (k + _STEP + _STEP_EXPONENTS * largest)


@inlined
def _scaled(fresh: Any, j: int, support: Any) -> Any:
    """Divide a column by its largest weight; that, and whether a weight that counts is too small.

    A column that only impossible values of the secret reach becomes empty.
    """
    peak, small = 0.0, False
    for x in range(fresh.shape[0]):
        if support[x]:
            peak = max(peak, fresh[x, j])
    for x in range(fresh.shape[0]):
        fresh[x, j] = 0.0 if peak == 0.0 else fresh[x, j] / peak
        small = small or (support[x] and 0.0 < fresh[x, j] < _SMALL)
    return peak, small


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
                        total += math.exp(term - top)
                        size = abs(weights[x, i]) + abs(logs[i]) + abs(log_kernel[i, j]) + abs(top)
                        largest = max(largest, size)
                fresh[x, j] = top + _log(total)
                peak = max(peak, fresh[x, j])
        fresh_logs[j] = peak
        if peak > -np.inf:
            for x in range(k):
                fresh[x, j] -= peak
    return _BOTH * (k + _CAREFUL_STEP + _CAREFUL_EXPONENTS * largest)


@inlined
def _silenced(fresh_logs: Any, row: Any, logs: Any) -> bool:
    """V = U·diag(q) on the columns' logarithms, the largest then 0; False if nothing is left."""
    top = -np.inf
    for j in range(len(row)):
        logs[j] = fresh_logs[j] + _log(row[j])
        top = max(top, logs[j])
    if top == -np.inf:
        return False
    for j in range(len(row)):
        logs[j] -= top
    return True


@compiled
def _note(
    ratios: Any,
    fresh_logs: Any,
    support: Any,
    distance: int,
    row: Any,
    worst: Any,
    at: Any,
    value: Any,
) -> bool:
    """Enter what this record can release into worst; True if a later one could still exceed it.

    ratios: (k, k) logarithms of the weights of each column.
    """
    unsure = False
    for j in range(len(row)):
        if fresh_logs[j] == -np.inf:
            continue
        if row[j] == 1.0:
            unsure = True
        else:
            _enter(ratios[:, j], support, distance, j, worst, at, value)
    if not unsure:  # every value that occurs here may be released, so no later ratio is larger
        return False
    for j in range(len(row)):
        if fresh_logs[j] > -np.inf and row[j] == 1.0 and _exceeds(ratios[:, j], support, worst):
            return True
    return False


@inlined
def _enter(
    logs: Any, support: Any, distance: int, shown: int, worst: Any, at: Any, value: Any
) -> None:
    """Enter the log-ratios of one output, logs (k,) up to a constant, where they are larger."""
    for x in range(len(logs)):
        if support[x] and logs[x] > -np.inf:
            for other in range(len(logs)):
                if support[other] and other != x and logs[x] - logs[other] > worst[x, other]:
                    worst[x, other] = logs[x] - logs[other]
                    at[x, other], value[x, other] = distance, shown


@inlined
def _exceeds(logs: Any, support: Any, worst: Any) -> bool:
    """Whether one of these log-ratios is larger than what has been met."""
    for x in range(len(logs)):
        if support[x] and logs[x] > -np.inf:
            for other in range(len(logs)):
                if support[other] and other != x and logs[x] - logs[other] > worst[x, other]:
                    return True
    return False


@compiled
def _note_end(
    careful: bool,
    weights: Any,
    logs: Any,
    support: Any,
    distance: int,
    worst: Any,
    at: Any,
    value: Any,
) -> Any:
    """Enter "nothing released to the end": the row sums of V.

    Returns whether plain numbers served, and what rounding may have added, in units.
    """
    k = len(logs)
    ok = True
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
                    total += math.exp(weights[x, j] + logs[j] - top)
                    if weights[x, j] > -np.inf:
                        largest = max(largest, abs(weights[x, j]) + abs(logs[j]) + abs(top))
                else:
                    ok = ok and logs[j] > _LOG_SMALL
                    total += weights[x, j] * math.exp(logs[j])
        if total > 0.0:
            sums[x] = top + _log(total)
    _enter(sums, support, distance, -1, worst, at, value)
    return ok, _END_EXPONENTS * largest


@compiled
def likelihoods(log_kernels: Any, support: Any, count: int, careful: bool) -> Any:
    """(count, k, k) log Pr(X_{p±d} = j | secret = x) less a constant a column, d = 1 … count.

    Everything before is redacted. The constant makes the largest entry of a column 0; a column of
    −∞ is a value that record never takes. Returns with it ok=False where ratios became too large;
    careful, it always serves.
    """
    k = support.shape[0]
    weights, logs = _at_once(k, careful), np.zeros(k)
    fresh, fresh_logs = np.empty((k, k)), np.empty(k)
    out = np.empty((count, k, k))
    for d in range(count):
        kernel = log_kernels[0 if log_kernels.shape[0] == 1 else d]
        if _advance(careful, weights, logs, kernel, support, fresh, fresh_logs) < 0.0:
            return False, out
        weights, fresh = fresh, weights
        logs, fresh_logs = fresh_logs, logs
        for x in range(k):
            for j in range(k):
                weight = weights[x, j] if careful else _log(weights[x, j])
                out[d, x, j] = weight if support[x] else -np.inf
    return True, out


@compiled
def log_gradients(kernels: Any, probabilities: Any, reached: Any, t: int, onward: Any) -> Any:
    """(k, m, t, k) derivatives of log Pr(output | x) by the redaction probabilities before it (F7).

    kernels, probabilities, reached: (T, k, k), (T, k), (T, k, k) of a walk; onward: (k, m), for m
    outputs the probability of each from every value one step before distance t. The derivative by
    q_s[i] is reached_s[x, i]·onward_s[i] over its sum with q_s, whatever the scale of either: so
    each may be scaled as a whole, and `onward` is, going back towards the secret.
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
