"""Designs: all that the secrets of a table need for one model, budget and mechanism; and files."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from offrecord.errors import InputError
from offrecord.files import (
    checked_content,
    read_count,
    read_json,
    read_list,
    read_number,
    read_text,
    write_text,
)
from offrecord.mechanisms.base import Decider, Design, Made, Mechanism, Shared
from offrecord.mechanisms.surroundings import Surrounding
from offrecord.models.base import Model
from offrecord.models.clock import phase_count
from offrecord.models.loading import model_from_dict
from offrecord.release.certificate import phase_runs, spelled_phases
from offrecord.release.coins import subkey
from offrecord.theory.leakage import is_exact

DESIGNS_VERSION = 3
_MOST_RECORDS = 10**7  # whose phases a file may spell out
_DAMAGED = "damaged: it does not hold what a designs file holds; delete it, or give another"


class Setting(NamedTuple):
    """What designs are for: the same model, budget, mechanism and kind of secret."""

    model: Model
    epsilon: float
    mechanism: Mechanism
    protect: str


@dataclass(frozen=True, eq=False)
class Designs:
    """Designs for one setting.

    grids: the rooms to the left and right they are made for, up to where the chain has forgotten;
    None for a model that is not stationary. loss: expected redactions that rounding rooms up to
    these grids costs a secret. sealed: read from a file as it was written. candidates: all there is
    of a file that is not sealed; a surrounding that needs one judges it, and `refused` counts those
    it did not take. apart: clusters for which one design gains nothing. windows: what may act in
    their place, as a file keeps it: sealed ones alone.
    """

    setting: Setting
    designs: tuple[Design, ...]
    grids: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    loss: float = 0.0
    sealed: bool = False
    candidates: Mapping[Surrounding, Design] = field(default_factory=dict)
    refused: int = 0
    apart: frozenset[Surrounding] = frozenset()
    windows: tuple[Design, ...] = ()

    @property
    def model(self) -> Model:
        """The model they are for."""
        return self.setting.model

    @property
    def leakage(self) -> float:
        """The largest of a design; of none 0."""
        return max((design.leakage for design in self.designs), default=0.0)

    @property
    def most_told(self) -> float:
        """The largest leakage of a design, rounding included."""
        return max((design.leakage + design.rounding for design in self.designs), default=0.0)

    @property
    def is_exact(self) -> bool:
        """No leakage of a design is a mere upper bound."""
        return all(is_exact(design.method) for design in self.designs)

    @cached_property
    def decider(self) -> Decider:
        """What decides by them."""
        return self.setting.mechanism.designs.decider(self.designs, self.model)

    @cached_property
    def digest(self) -> str:
        """Of everything that decides which records are redacted."""
        digest = hashlib.sha256()
        for design in self.designs:
            digest.update(design.identity)
        return digest.hexdigest()

    def merged(self, known: Designs | None) -> Designs:
        """These designs and those known before: sealed ones, for all others are only candidates."""
        if known is None:
            return self
        return replace(
            self,
            designs=_with_others(self.designs, known.designs),
            apart=self.apart | known.apart,
            windows=_with_others(self.windows, known.windows),
        )

    def adds_to(self, known: Designs) -> bool:
        """Something here is not known, or more of it is."""
        if not self.apart <= known.apart:
            return True
        pairs = (self.designs, known.designs), (self.windows, known.windows)
        return any(not _is_held(mine, others) for mine, others in pairs)

    def for_gaps(self, lengths: Sequence[int]) -> Designs:
        """What acts of these designs in a table whose gaps have these lengths: the same whatever
        other tables have brought to their file.
        """
        return replace(self, designs=tuple(one.for_gaps(lengths) for one in self.designs))

    # ---- files

    def to_dict(self) -> dict[str, Any]:
        """The content of a designs file."""
        shared = Shared()
        designs, windows = (
            [_said(one, self.model, shared) for one in some]
            for some in (self.designs, self.windows)
        )
        return {
            "format": "offrecord-designs",
            "version": DESIGNS_VERSION,
            "mechanism": self.setting.mechanism.name,
            "epsilon": self.setting.epsilon,
            "protect": self.setting.protect,
            "grids": self.grids,
            "loss": self.loss,
            "model": self.model.to_dict(),
            self.setting.mechanism.designs.shares: shared.listed,
            "designs": designs,
            "windows": windows,
            "apart": [[one.left, one.right, list(one.inside)] for one in sorted(self.apart)],
        }

    def save(self, path: str | Path, key: bytes | None = None) -> None:
        """Write a designs file over an older one, sealed if there is a key; without candidates."""
        content = self.to_dict()
        sealed = content if key is None else {**content, "seal": _seal(content, key)}
        write_text(path, json.dumps(sealed, allow_nan=False) + "\n", force=True)

    @classmethod
    def load(cls, path: str | Path, setting: Setting, key: bytes | None = None) -> Designs:
        """Read a designs file made for the same setting.

        Unless this version wrote the file and sealed it with the same key, it holds no designs,
        only candidates for some.
        """
        content = read_json(path)
        try:
            return _from_dict(content, setting, key)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except RecursionError:
            raise InputError(
                f"{path}: damaged: it is nested too deeply for a designs file"
            ) from None


def _with_others(mine: Sequence[Design], known: Sequence[Design]) -> tuple[Design, ...]:
    """Designs, and those known for other surroundings."""
    served = {design.surrounding for design in mine}
    return (*mine, *(design for design in known if design.surrounding not in served))


def _is_held(mine: Sequence[Design], known: Sequence[Design]) -> bool:
    """Whether all of them are known."""
    held = {design.surrounding: design.identity for design in known}
    return all(held.get(design.surrounding) == design.identity for design in mine)


def _from_dict(content: Any, setting: Setting, key: bytes | None) -> Designs:
    kind = setting.mechanism.designs
    keys = ("mechanism", "epsilon", "protect", "model", "designs", "grids", "loss")
    content = checked_content(content, "designs", DESIGNS_VERSION, keys)
    seal = content.pop("seal", None)
    given = seal if isinstance(seal, str) and seal.isascii() else ""
    sealed = key is not None and hmac.compare_digest(given, _seal(content, key))
    _check_setting(content, setting)
    try:
        shared = read_list(content[kind.shares])
        read = kind.read(_entries(content["designs"], setting.model), shared, setting.model)
        grids = None if content["grids"] is None else _grids(content["grids"])
        loss = read_number(content["loss"])
        if sealed:
            apart = _apart(content.get("apart", []))
            checked = _checked(read, grids, setting)
            entries = _entries(content.get("windows", []), setting.model)
            windows = _checked(kind.read(entries, shared, setting.model), None, setting)
            return Designs(setting, checked, grids, loss, sealed, apart=apart, windows=windows)
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError):
        raise InputError(_DAMAGED) from None
    return Designs(setting, (), candidates={design.surrounding: design for design in read})


def _check_setting(content: Mapping[str, Any], setting: Setting) -> None:
    """InputError unless a file was made for the same."""
    wanted = {
        "mechanism": setting.mechanism.name,
        "epsilon": setting.epsilon,
        "protect": setting.protect,
    }
    for name, value in wanted.items():
        if content[name] != value or isinstance(content[name], bool):
            raise InputError(
                f"made for {name} {content[name]!r:.60}, not {value!r}; give another file to"
                " --designs"
            )
    if model_from_dict(content["model"]).to_dict() != setting.model.to_dict():
        raise InputError("made for another model; give another file to --designs")


def _checked(
    designs: Sequence[Design],
    grids: tuple[tuple[int, ...], tuple[int, ...]] | None,
    setting: Setting,
) -> tuple[Design, ...]:
    """Designs of a sealed file; ValueError if they are not what such a file holds."""
    if grids is not None and not 0 < grids[0][-1] == grids[1][-1]:
        raise ValueError("not grids of the same room")
    for design in designs:
        if not design.fits(setting.model.order):
            raise ValueError("longer than its rooms")
        if design.leakage + design.rounding > setting.epsilon:
            raise ValueError("not within the budget")
    return tuple(designs)


def _seal(content: dict[str, Any], key: bytes) -> str:
    """What only this version and the key's owner can write under a designs file.

    The purpose has a number because earlier forms of it also sealed designs that had been judged in
    rooms of their own making, or that no verifier had proven.
    """
    text = json.dumps([version("offrecord"), content], sort_keys=True)
    return hmac.new(subkey(key, b"offrecord/seal 3"), text.encode(), "sha256").hexdigest()


# ---- what a file says, if it is of its kind; ValueError otherwise


def _entries(content: Any, model: Model) -> list[tuple[Made, Mapping[str, Any]]]:
    """What it says about each design; those of a chain with phases that it does not spell out are
    left, and made anew.
    """
    entries: list[tuple[Made, Mapping[str, Any]]] = []
    seen = set()
    for one in read_list(content):
        rooms = (read_count(one["left"]), read_count(one["right"]), read_count(one["length"], 1))
        named = read_text(one["context"])
        phases = _phases(one.get("phases"), model, *rooms)
        if named and not phases:
            continue
        around = Surrounding(*rooms, phases, _inside(one["inside"], rooms[2]))
        if around in seen or around.context != named:
            raise ValueError("a surrounding comes twice, or is called by another name")
        seen.add(around)
        left, right = read_list(one["window"])
        window = read_count(left), read_count(right)
        leakage, rounding = (read_number(one[name]) for name in ("leakage", "rounding"))
        made = Made(around, leakage, rounding, read_text(one["method"]), window)
        entries.append((made, one))
    return entries


def _said(design: Design, model: Model, shared: Shared) -> dict[str, Any]:
    """What a file says about a design."""
    around = design.surrounding
    return {
        "left": around.left,
        "right": around.right,
        "length": around.length,
        "context": around.context,
        "phases": _runs(around, model),
        "inside": list(around.inside),
        **design.to_dict(shared),
        "leakage": design.leakage,
        "rounding": design.rounding,
        "method": design.method,
        "window": list(design.window),
    }


def _runs(around: Surrounding, model: Model) -> list[list[int]] | None:
    """The phases of a surrounding, as runs; None of a model without."""
    if model.clock is None:
        return None
    phases = np.frombuffer(around.phases, dtype=np.int8).tolist()
    return [list(run) for run in phase_runs(phases, phase_count(model.clock.phase))]


def _phases(runs: Any, model: Model, left: int, right: int, length: int) -> bytes:
    """The phases that runs stand for, as many as a surrounding has; none without runs."""
    if model.clock is None or runs is None:
        return b""
    count = phase_count(model.clock.phase)
    read = [[read_count(number) for number in read_list(run)] for run in read_list(runs)]
    records = sum(run[2] for run in read)
    if not left + length + right <= min(records, _MOST_RECORDS) <= left + length + max(right, 1):
        raise ValueError("not as many phases as records")
    return np.array(spelled_phases(read, count), dtype=np.int8).tobytes()


def _inside(value: Any, length: int) -> bytes:
    """Which records of a cluster are private, if it is one."""
    inside = bytes(read_count(one, 0, 1) for one in read_list(value))
    if inside and not (len(inside) == length and inside[0] == inside[-1] == 1):
        raise ValueError("not a cluster of so many records")
    return inside


def _apart(value: Any) -> frozenset[Surrounding]:
    """Clusters that have no design, by their rooms and which of their records are private."""
    found = []
    for left, right, inside in map(read_list, read_list(value)):
        length = len(read_list(inside))
        rooms = read_count(left), read_count(right), read_count(length, 1)
        found.append(Surrounding(*rooms, inside=_inside(inside, length)))
    return frozenset(found)


def _grids(value: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    left, right = (tuple(read_count(node) for node in read_list(grid)) for grid in read_list(value))
    if not all(grid and list(grid) == sorted(set(grid)) for grid in (left, right)):
        raise ValueError("not grids of rooms")
    return left, right
