"""The certificate of a release: what was promised, under which assumptions, and what anyone needs
to check it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from offrecord.designs.library import Designs

CERTIFICATE_VERSION = 1

COMPOSITION = (
    "Around each secret stands the design for its surroundings; where several fall on a record, the"
    " largest redaction probability of each value counts. A record is redacted if its 64-bit draw"
    " lies below that probability times 2^64, rounded up. More redaction never leaks more, so the"
    " release leaks about each secret on its own at most the largest leakage of a design."
)

ASSUMPTIONS = (
    "The records of a chain follow the model given here.",
    "Chains are independent of each other.",
    (
        "Which records are private, which are missing, how long chains are, and the order values do"
        " not depend on the values."
    ),
    "Whoever attacks knows none of the redacted values otherwise.",
    "The key stays secret; each record's coin is its own.",
    "Each secret is protected on its own, not several of them jointly.",
    "No other release of these records, or of records that depend on them, exists.",
)

KEPT = "The columns kept beside the value carry nothing about it."


#: What is said about positions that are not published.
POSITIONS = (
    "The designs say how many records lie to the left and right of a secret, up to where the chain"
    " has forgotten: in short chains that tells where it is, and so do the holes in the table."
)


def certificate(
    *,
    designs: Designs,
    counts: Mapping[str, int],
    columns: Mapping[str, Any],
    dataset: str,
    key_id: str,
    private: Mapping[str, Any],
    release: Mapping[str, Any],
    kept: bool,
    exact: bool,
    model_check: Mapping[str, Any],
) -> dict[str, Any]:
    """The content of a certificate; `output` is added when the release is written."""
    leakage = max((design.leakage for design in designs.designs), default=0.0)
    return {
        "format": "offrecord-certificate",
        "version": CERTIFICATE_VERSION,
        "claim": {
            "epsilon": designs.epsilon,
            "protect": designs.protect,
            "mechanism": designs.mechanism,
            "leakage": leakage if math.isfinite(leakage) else "inf",
            "leakage_is_exact": exact,
            "statement": (
                "For every output that can occur and every two values of a secret, the likelihoods"
                f" of the output differ by a factor of at most e^{designs.epsilon:g} ="
                f" {math.exp(min(designs.epsilon, 700.0)):.6g}."
            ),
        },
        "assumptions": [*ASSUMPTIONS, *([KEPT] if kept else [])],
        "composition": COMPOSITION,
        "dataset": dataset,
        "key_id": key_id,
        "columns": dict(columns),
        "counts": dict(counts),
        "private": dict(private),
        "release": dict(release),
        "designs": {
            name: value
            for name, value in designs.to_dict().items()
            if name not in ("format", "version", "model")
        },
        "model": designs.model.to_dict(),
        "learned": None if designs.model.learned is None else designs.model.learned.to_dict(),
        "model_check": dict(model_check),
        "versions": {
            "offrecord": version("offrecord"),
            "polars": version("polars"),
            "numpy": version("numpy"),
        },
    }


def certified(content: Mapping[str, Any], kind: str, columns: Sequence[str], digest: str) -> bytes:
    """A certificate file, with what it says about its output: format, columns and SHA-256."""
    output = {
        "format": kind,
        "sha256": digest,
        "rows": content["counts"]["rows"],
        "columns": list(columns),
    }
    return (
        json.dumps({**content, "output": output}, ensure_ascii=False, allow_nan=False, indent=1)
        + "\n"
    ).encode()


def positions(by: Sequence[str], order: str, rows: Sequence[Sequence[Any]]) -> dict[str, Any]:
    """Private positions as they are published: the names of the columns, and a key for each private
    record.
    """
    return {"columns": [*by, order], "keys": [list(row) for row in rows]}
