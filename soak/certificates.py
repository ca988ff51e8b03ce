"""Certificates that were tampered with: never a traceback, never without an end, and what is
accepted is harmless: by the field that was changed, and by the other half of the package, which
shares no code with the verifier and finds for itself what the designs tell that are in it now.
"""

from __future__ import annotations

import json
import pickle
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import offrecord as off
from offrecord.errors import InputError
from offrecord.models.files import HEAD
from offrecord.models.loading import model_from_dict
from offrecord.release import certificate as form
from offrecord.verify import verify
from offrecord.verify.problem import Problem
from soak.campaign import Case, Notes, ViolationError
from soak.texts import hostile_json, noisy

BINARY = [[0.9, 0.1], [0.3, 0.7]]
THREE = [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
#: By another computation than the verifier's, in floating point.
_ROUNDING = 1e-9


def _models() -> dict[str, tuple[Any, str, tuple[int, ...]]]:
    """The kinds that tests change field by field, and more."""
    from mutations import HOURS, MODELS

    two = off.Box.binary((0.08, 0.12), (0.25, 0.35))
    starts = np.tile([0.75, 0.25], (24, 1))
    chain = off.MarkovChain(THREE)
    back = chain.start[:, None] * chain.transition
    kernels = chain.transition, (back / back.sum(axis=0)).T
    three = off.Box(*((np.clip(one - 0.01, 0, 1), np.clip(one + 0.01, 0, 1)) for one in kernels))
    hidden = [[0.8, 0.2, 0.0], [0.1, 0.7, 0.2], [0.3, 0.0, 0.7]]
    return MODELS | {
        "owner of a set": (off.MarkovChain(BINARY, box=two), "owner", (10, 12, 30)),
        "owner of three values": (chain, "owner", (10, 13, 30)),
        "owner of order 2": (
            off.MarkovChain([BINARY, [[0.6, 0.4], [0.2, 0.8]]], order=2), "owner", (10, 30),
        ),
        "owner with a start": (off.MarkovChain(BINARY, start=[0.9, 0.1]), "owner", (3, 30)),
        "owner in phases": (off.PhasedChain("hour", HOURS, starts, zone="UTC"), "owner", (20,)),
        "a set of three values": (chain.with_box(three), "window", (10, 40)),
        "hidden states": (off.MarkovChain(hidden, shows=[0, 0, 1]), "window", (10, 40)),
    }  # fmt: skip


class CertificatesCampaign:
    """Real certificates, changed."""

    name = "certificates"
    least = 100_000
    limit = 120.0
    memory = 8 << 30
    kinds: ClassVar = {
        "local": 1.0,
        "clustered": 1.0,
        "owner": 1.0,
        "three values": 1.0,
        "a set": 1.0,
        "a start": 1.0,
        "hours": 1.0,
        "order 2": 1.0,
        "owner of a set": 1.0,
        "owner of three values": 1.0,
        "owner of order 2": 1.0,
        "owner with a start": 1.0,
        "owner in phases": 1.0,
        "a set of three values": 1.0,
        "hidden states": 1.0,
    }

    def prepared(self, folder: Path) -> None:
        """A key; releases are made when they are first asked for."""
        from offrecord.release.keys import Key

        Key.load_or_new(_store(folder) / "key" / "key.json")

    def ready(self, folder: Path, kind: str) -> None:
        """Nothing is needed: a case reads what it changes."""

    def run(self, case: Case, folder: Path, store: Path) -> Notes:
        """Change a certificate, and ask."""
        rng = case.random()
        certificate = _store(store) / f"{case.kind}.csv.certificate.json"
        if not certificate.exists():
            _release(_store(store), case.kind)
        content = json.loads(certificate.read_bytes())
        with_table = rng.random() < 0.15
        how, changed = _changed(rng, content, 1009 * case.batch + case.number)
        file = folder / "case" / "certificate.json"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(changed)
        given: dict[str, Any] = {}
        if with_table:
            given = {
                "released": _store(store) / f"{case.kind}.csv",
                "private_list": _store(store) / f"{case.kind}.list.csv",
                "key_file": _store(store) / "key" / "key.json",
            }
        notes: Notes = Counter({how: 1, "with the table": int(with_table)})
        try:
            verdict = verify(file, **given)
        except InputError as error:
            if "\n" in str(error):
                raise ViolationError(f"an error of several lines: {str(error)!r:.200}") from None
            notes["cannot be read"] += 1
            return notes
        if not verdict.is_verified:
            notes["refused"] += 1
            return notes
        notes["accepted"] += 1
        _check_harmless(content, changed, notes, with_table=with_table)
        return notes


def _store(folder: Path) -> Path:
    """Of this version of the form: any other is refused, whatever else is changed."""
    return folder / f"certificates {form.CERTIFICATE_VERSION}"


def _release(store: Path, name: str) -> None:
    """A release, with its list of private records."""
    from mutations import table

    model, mechanism, private = _models()[name]
    frame = table(private)
    frame.filter("p").select("t").write_csv(store / f"{name}.list.csv")
    release = off.redact(
        frame,
        value="v", order="t", private="p", single_chain=True, step="1h", epsilon=1.0, model=model,
        mechanism=mechanism, dataset=name, key_file=store / "key" / "key.json", accept_model=True,
    )  # fmt: skip
    release.write(store / f"{name}.csv", force=True)


# ---- changes


def _changed(rng: random.Random, content: Any, turn: int) -> tuple[str, bytes]:
    """How it was changed, and the text. Every field has its turn."""
    from mutations import at, changed, leaves, mutated

    kind = rng.random()
    if kind < 0.4:
        places = list(leaves(content))
        path = places[turn % len(places)]  # all of them, one after the other
        before = at(content, path)
        alike = [one for one in _others(rng, before) if type(one) is type(before)]
        value = rng.choice(alike if alike and rng.random() < 0.8 else list(_others(rng, before)))
        return "a field changed", _text(changed(content, path, value))
    if kind < 0.6:
        return "a part changed", _text(mutated(content, rng))
    if kind < 0.75:
        return "several at once", _text(_attacked(rng, pickle.loads(pickle.dumps(content))))
    if kind < 0.9:
        return "bytes changed", noisy(rng, _text(content))
    return "hostile JSON", hostile_json(rng, content)


def _text(content: Any) -> bytes:
    return json.dumps(content).encode()


def _others(rng: random.Random, value: Any) -> Iterator[Any]:
    """What may stand there instead: near, far, of another type."""
    from mutations import others

    yield from others(value)
    yield from (None, [], {}, "", 0, 1, -1, True, 0.5, 1e308, 5e-324, 2**53 + 1, 10**18)
    if isinstance(value, float):
        yield from (float(np.nextafter(value, 0)), float(np.nextafter(value, 9)), -value)
        yield from (value * rng.uniform(0.5, 1.0), value * rng.uniform(1.0, 2.0), 1 - value)
    elif isinstance(value, int):
        yield from (value * 2, value + 1000, -value, float(value))
    elif isinstance(value, str):
        yield from (value.upper(), value[::-1], value[:-1], value + " ", "\ud800", "⊥", "x" * 5000)


def _attacked(rng: random.Random, content: Any) -> Any:
    """As someone would who wants to promise more than holds, and says it everywhere alike."""
    tricks = [_less_epsilon, _less_redaction, _other_kernel, _shorter_walks, _other_rooms]
    for trick in rng.sample(tricks, rng.choice([1, 1, 2, 3])):
        trick(rng, content)
    return content


def _less_epsilon(rng: random.Random, content: Any) -> None:
    epsilon = content["claim"]["epsilon"] * rng.choice([0.5, 0.9, 0.999, 1 - 1e-12, 1.1])
    content["claim"]["epsilon"] = content["designs"]["epsilon"] = epsilon
    content["claim"]["statement"] = form.claim_statement(epsilon)
    for design in content["designs"]["designs"]:
        design["leakage"], design["rounding"] = min(design["leakage"], epsilon), 0.0
    stated = [design["leakage"] for design in content["designs"]["designs"]]
    content["claim"]["leakage"] = max(stated, default=0.0)
    for stopping in content["designs"].get("stoppings", ()):
        stopping["epsilon"] = epsilon


def _less_redaction(rng: random.Random, content: Any) -> None:
    for side in content["designs"].get("sides", ()):
        for stretch in side:
            share = rng.choice([0.0, 0.5, 0.99, 1 - 1e-9])
            stretch[1] = [p * share if rng.random() < 0.5 else p for p in stretch[1]]


def _other_kernel(rng: random.Random, content: Any) -> None:
    model = content["model"]

    def slower(part: Any) -> Any:
        if isinstance(part[0], list):
            return [slower(one) for one in part]
        i, j = rng.randrange(len(part)), rng.randrange(len(part))
        moved = min(part[i], rng.choice([0.0001, 0.01, 0.05]))
        part[i], part[j] = round(part[i] - moved, 6), round(part[j] + moved, 6)
        return part

    model["transition"] = slower(model["transition"])


def _shorter_walks(rng: random.Random, content: Any) -> None:
    for stopping in content["designs"].get("stoppings", ()):
        for side in stopping["sides"]:
            if side["levels"] and rng.random() < 0.5:
                side["levels"] = [max(one - 1, 1) for one in side["levels"]]
            elif rng.random() < 0.3:
                side["budget"] *= rng.choice([0.5, 0.99])
        rng.shuffle(stopping["sides"])


def _other_rooms(rng: random.Random, content: Any) -> None:
    designs = content["designs"]["designs"]
    if not designs:
        return
    one = rng.choice(designs)
    one[rng.choice(["left", "right", "length"])] = rng.choice([0, 1, 2, 5, 100, 5000])
    for name in ("redaction_left", "redaction_right"):
        if name in one and rng.random() < 0.5:
            one[name] = rng.randrange(len(content["designs"]["sides"]))


# ---- what is harmless


def _check_harmless(before: Any, text: bytes, notes: Notes, *, with_table: bool) -> None:
    """ViolationError unless what was changed is harmless, and what is told now within ε."""
    from mutations import HARMLESS, is_harmless

    after = json.loads(text)
    places = set(_differences(before, after))
    if not places:
        notes["the same in other words"] += 1
        return
    notes["accepted, another"] += 1
    for path in places:
        named, reason = ".".join(map(str, path)), _reason(HARMLESS, path)
        more = path[0] == "assumptions" and set(before["assumptions"]) <= set(after["assumptions"])
        more |= path == ("output",) and after["output"] is None  # as of a dry run: of no table
        if not (more or is_harmless(path) or path[0] in ("claim", "designs", "model")):
            raise ViolationError(f"accepted with another {named}")
        if with_table and reason == "checked with the table" and path != ("counts", "missing"):
            raise ViolationError(f"accepted with another {named}, with the table")
    if any(path[0] in ("claim", "designs", "model") for path in places):
        _check_told(after, notes)


def _reason(harmless: dict[str, str], path: tuple[Any, ...]) -> str | None:
    return harmless.get(".".join(str(part) for part in path if not isinstance(part, int)))


def _differences(one: Any, other: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where two contents differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one.keys() | other.keys():
            if key not in one or key not in other:
                yield (*path, key)
            else:
                yield from _differences(one[key], other[key], (*path, key))
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            yield path
        else:
            for at, (a, b) in enumerate(zip(one, other, strict=True)):
                yield from _differences(a, b, (*path, at))
    elif type(one) is not type(other) or one != other:
        yield path


def _check_told(content: Any, notes: Notes) -> None:
    """What designs tell by the package's own theory, within the ε that is claimed."""
    read = form.Certificate.from_json(json.dumps(content).encode())
    epsilon, designs = read.claim.epsilon, read.designs
    try:
        told = _told_by_all(content, read)
    except InputError:  # designs are made for fewer models than can be judged
        told = None
    if told is None:
        notes["another promise, by the verifier alone"] += 1
    elif told <= designs.epsilon + _ROUNDING and designs.epsilon <= epsilon:
        notes["another promise that holds"] += 1
    else:
        raise ViolationError(f"accepted, but a design tells {told!r} of ε {epsilon!r}")


def _told_by_all(content: Any, read: form.Certificate) -> float | None:
    """The most of a local design; None where it cannot be found here."""
    designs = read.designs
    if not isinstance(designs, form.LocalDesigns):
        return None
    model = model_from_dict(_model_content(content["model"]))
    found = [_told(designs, design, read.model, model) for design in designs.designs]
    return None if None in found else max((one for one in found if one is not None), default=0.0)


def _model_content(section: Any) -> dict[str, Any]:
    content = {**HEAD, **section}
    if content.pop("stationary"):
        content["start"] = None
    return {name: value for name, value in content.items() if value is not None or name == "start"}


def _told(designs: Any, design: Any, section: form.Model, model: Any) -> float | None:
    """None where it would have to be found for longer chains than are looked at here."""
    problem = Problem.of(designs, design, section)
    if problem.n > 3000:
        return None
    rows = [stretch.row for stretch in problem.stretches for _ in range(stretch.records)]
    private = [at + 1 for one in problem.secrets for at in range(one.first, one.last + 1)]
    along = model.along() if problem.phases is None else model.along(np.array(problem.phases))
    asked = off.Problem(along, problem.n, private, designs.epsilon, designs.protect)
    return off.worst_output(asked, np.array(rows)).upper
