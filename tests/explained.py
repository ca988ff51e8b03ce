"""What each row's position says of it, read off the rule of a release: never what was drawn."""

import numpy as np
import polars as pl

from offrecord.mechanisms.deciding import decide as deciding
from offrecord.tables.growing import closed, open_ended


def explained(release):
    """For each row its key and region; where local rules act, its redaction by value, too."""
    table, rule = release.table, release.outcome.plan.rule
    arranged = table.arranged
    names = arranged.columns.released[: -1 - len(arranged.columns.keep)]
    added = [pl.Series("region", regions(rule, table)), *_chances(rule, table)]
    return arranged.frame.select(names).with_columns(added) if names else pl.DataFrame(added)


def regions(rule, table):
    """(n,) what each row is by its position."""
    part = rule._certain(table)
    found = np.where(part.always, "L", np.where(part.never, "S", "M"))
    return np.where(table.is_private, "private", np.where(part.waits, "waits", found))


def _chances(rule, table):
    gone = _redaction(rule, table)
    if gone is None:
        return []
    if rule.holding is not None:
        gone[rule.holding.waits(table.arranged, table.private)] = 1.0
    labels = enumerate(table.arranged.labels)
    return [pl.Series(f"Pr(redacted | {label})", gone[:, code]) for code, label in labels]


def _redaction(rule, table):
    """(n, k) by record and value; None where stopping rules act."""
    chains, values = table.chains, len(table.arranged.labels)
    if rule.policy is None or not rule.policy.rules:  # whole chains go
        return np.repeat(chains.spread(table.touched).astype(float)[:, np.newaxis], values, axis=1)
    acting = chains if rule.holding is None else open_ended(chains)
    runs, place_of = table.runs(rule.protect), table.place_of(rule.places)
    found = deciding.local_redaction(acting, runs, rule.policy, place_of, rule.order)
    if found is None or rule.holding is None:
        return found
    return np.stack([closed(one, chains) for one in found.T], axis=1)
