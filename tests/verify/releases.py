"""Certificates of real releases, and how long their designs took."""

import json
import time

import numpy as np
import polars as pl

import offrecord as off
from offrecord.release.certificate import Certificate
from offrecord.verify.balls import decided
from offrecord.verify.problem import Problem


def table_of(model, chains=4, n=40, seed=0):
    """Chains with some private records: runs, near ones, at the ends."""
    rng = np.random.default_rng(seed)
    rows = []
    for chain in range(chains):
        private = set(rng.choice(n, size=2, replace=False).tolist())
        first = int(rng.integers(n - 3))
        private |= set(range(first, first + 1 + int(rng.integers(3))))
        private |= {0} if chain == 1 else set()
        rows += [
            {
                "id": chain,
                "t": t,
                "v": model.labels[rng.integers(model.k)],
                "p": t in private,
            }
            for t in range(n)
        ]
    return pl.DataFrame(rows)


def certificate_of(model, mechanism, epsilon=1.0, frame=None, protect="run"):
    """A certificate, and the seconds that it took to make."""
    frame = table_of(model) if frame is None else frame
    began = time.perf_counter()
    release = off.redact(
        frame,
        value="v",
        order="t",
        by="id",
        private="p",
        epsilon=epsilon,
        protect=protect,
        model=model,
        mechanism=mechanism,
        dataset="d",
        dry_run=True,
        accept_model=True,
        design_minutes=1000,
    )
    seconds = time.perf_counter() - began
    return Certificate.from_json(json.dumps(release.certificate).encode()), seconds


def judged(certificate, told):
    """For each design whether it is proven, the bound, and what the certificate says."""
    for design in certificate.designs.designs:
        problem = Problem.of(certificate.designs, design, certificate.model)
        proven, found = decided(lambda p=problem: told(p), certificate.designs.epsilon)
        yield proven, found, design
