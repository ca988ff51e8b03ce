"""Files and options that are not what they should be: an answer in time, exit code 0, 1 or 2, one
line of what is wrong, no cell of a private record anywhere, and no certificate that is believed
although its rules leak too much.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import random
import re
import shutil
import sys
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import offrecord as off
from offrecord.mechanisms.table_policy import TablePolicy
from offrecord.models.file import FORMAT, VERSION, Model
from offrecord.models.promise import ACCEPTANCE
from soak import needles
from soak.frames import table, written_oddly
from soak.running import STATE, Campaign, Notes, ViolationError
from soak.texts import hostile_json, hostile_table, noisy

COLUMNS = ["--value", "v", "--order", "t", "--by", "id"]
REDACT = [
    *COLUMNS, "--keep", "k", "--private-list", "list.csv", "--epsilon", "1", "--dataset", "e",
    "--key-file", "key/key.json", "-o", "out/out.csv", "--accept", "model", "--no-report",
]  # fmt: skip
BY_MODEL = [*REDACT, "--model", "model.json", "--mechanism", "window"]
CERTIFICATE = "released.csv.certificate.json"
VERIFY = [CERTIFICATE, "released.csv", "--private-list", "list.csv", "--key-file", "key/key.json"]
#: What is run, and the file of it that is changed.
COMMANDS: dict[str, tuple[list[str], str]] = {
    **{
        f"redact, table{ending}": (["redact", f"table{ending}", *BY_MODEL], f"table{ending}")
        for ending in (".csv", ".parquet", ".arrow", ".ndjson", ".csv.gz")
    },
    "redact --stream, table.csv": (["redact", "table.csv", *BY_MODEL, "--stream"], "table.csv"),
    "fit, table.csv": (["fit", "table.csv", *COLUMNS, "-o", "new.json"], "table.csv"),
    "fit, table.parquet": (["fit", "table.parquet", *COLUMNS, "-o", "new.json"], "table.parquet"),
    "redact, list": (["redact", "table.csv", *BY_MODEL], "list.csv"),
    "redact, model": (["redact", "table.csv", *BY_MODEL], "model.json"),
    "redact, policy": (["redact", "table.csv", *BY_MODEL[:-2], "--policy", CERTIFICATE],
    CERTIFICATE),
    "redact, key": (["redact", "table.csv", *BY_MODEL], "key/key.json"),
    "redact, ledger": (["redact", "table.csv", *BY_MODEL], "key/key.ledger.json"),
    "verify, certificate": (["verify", *VERIFY, "--seed", "1"], CERTIFICATE),
    "verify, released": (["verify", *VERIFY], "released.csv"),
    "verify, list": (["verify", *VERIFY], "list.csv"),
    "verify, key": (["verify", *VERIFY], "key/key.json"),
    "attack, released": (["attack", "released.csv", "--private-list", "list.csv"], "released.csv"),
    "report, certificate": (["report", *VERIFY[:2], "-o", "out/report.html"], CERTIFICATE),
    "answer, policy": (
        ["answer", "--policy", "policy.json", "--record", "2", "--key-file", "key/key.json"],
        "policy.json",
    ),
    "ledger, ledger": (["ledger", "show", "d", "--key-file", "key/key.json"],
    "key/key.ledger.json"),
}  # fmt: skip
#: Cells of private records are nowhere in what leaves, whatever else was changed.
_PRIVATE_STAYS = ("redact, model", "redact, policy", "redact, key", "redact, ledger")
_ASIDE = ("offrecord: warning: ", "offrecord: note: ")
_WORDS = (
    "", "0", "-1", "1e400", "nan", "0.5", "3", "99999999999999999999", "v", "t", "id", "no-such",
    "1,2", "3-1", "-", "a" * 5000, "é", "\u202e", "table.csv", "list.csv", "model.json", "out", ".",
    "best-local", "window", "owner", "run", "each", "1m", "1mo", "rare", "parquet", "auto", "hour",
    "policy.json", "=1", "0.95",
)  # fmt: skip


class Answer(NamedTuple):
    """What a run of the command says."""

    code: int
    out: str
    err: str


@cache
def good() -> Path:
    """A folder of files as they should be, made once."""
    import table_files
    from offrecord.release.keys import Key

    folder = STATE / "good"
    if (folder / "whole").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    frame, private = table()
    for ending in (".csv", ".parquet", ".arrow", ".ndjson", ".csv.gz"):
        table_files.write(frame, folder / f"table{ending}")
    private.write_csv(folder / "list.csv")
    labels = ["low", "mid", needles.VALUE]
    counts = [[600, 300, 100], [300, 500, 200], [200, 300, 500]]
    posterior = off.Posterior(counts, 1, labels)
    (folder / "model.json").write_text(
        json.dumps({"format": "offrecord-model", "version": 2, "model": posterior.to_dict()})
    )
    chain = off.MarkovChain([[0.6, 0.4], [0.3, 0.7]])
    off.design(off.Problem(chain, 9, [4], 1.0), "window").save(folder / "policy.json")
    key = folder / "key" / "key.json"
    Key.new(key)
    release = off.redact(
        frame, value="v", order="t", by="id", keep=["k"], private_list=private, model=posterior,
        epsilon=1.0, dataset="d", key_file=key, mechanism="window", accept="model",
    )  # fmt: skip
    release.write(folder / "released.csv")
    (folder / "whole").touch()
    return folder


def _changed_file(kind: str, rng: random.Random, folder: Path) -> Notes:
    arguments, name = COMMANDS[kind]
    _lay_out(folder)
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(_other(rng, name, content))
    if name == "released.csv" and rng.random() < 0.7:  # as one who alters a table would
        certificate = json.loads((folder / CERTIFICATE).read_text())
        digest = hashlib.sha256((folder / name).read_bytes()).hexdigest()
        certificate["output"]["sha256"] = digest
        (folder / CERTIFICATE).write_text(json.dumps(certificate))
    if name == "key/key.json":
        (folder / name).chmod(0o600)
    said = run(folder, arguments)
    check(kind, folder, said)
    if kind == "verify, certificate" and said.code == 0:
        _check_rules(json.loads((folder / name).read_bytes()))
    if kind in _PRIVATE_STAYS:
        given = {name, "table.csv", "list.csv", "model.json"}
        found = needles.found_under(folder, given | {f"table{one}" for one in _endings(folder)})
        if found is not None:
            raise ViolationError(f"needle: {found}")
    return Counter({f"exit {said.code}": 1})


def _endings(folder: Path) -> list[str]:
    return [file.name.removeprefix("table") for file in folder.glob("table.*")]


def _other_options(verb: str, rng: random.Random, folder: Path) -> Notes:
    """Words of a command changed, left out, twice, or more of them."""
    _lay_out(folder)
    words = list(next(words for kind, (words, _) in COMMANDS.items() if kind.startswith(verb)))
    names = _options_of(verb)
    for _ in range(rng.choice([1, 1, 2, 3])):
        at = rng.randrange(1, len(words)) if len(words) > 1 else 0
        match rng.randrange(4):
            case 0 if at:
                words[at] = rng.choice(_WORDS)
            case 1 if at:
                del words[at]
            case 2:
                words += [rng.choice(names), rng.choice(_WORDS)]
            case _:
                words += [rng.choice(names)]
    words = [word for word in words if word not in ("--help", "--picture")]
    said = run(folder, words)
    check(verb, folder, said)
    return Counter({f"exit {said.code}": 1})


def _lay_out(folder: Path) -> None:
    shutil.copytree(good(), folder, dirs_exist_ok=True)
    (folder / "out").mkdir()


@cache
def _options_of(verb: str) -> list[str]:
    from offrecord import cli

    out = io.StringIO()
    with redirect_stdout(out):
        cli.main([verb, "--help"])
    return sorted(set(re.findall(r"--[a-z][a-z-]+", out.getvalue())))


def _other(rng: random.Random, name: str, content: bytes) -> bytes:
    """Another content of a file, as its ending says it is made."""
    if rng.random() < 0.15:
        return noisy(rng, content)
    if name.endswith(".json"):
        return _other_json(rng, content)
    if name.startswith("table") and rng.random() < 0.3:
        return written_oddly(rng, name)
    if name.endswith(".csv.gz"):
        return gzip.compress(hostile_table(rng, gzip.decompress(content)))
    if name.endswith((".csv", ".ndjson")):
        return hostile_table(rng, content)
    return noisy(rng, content)


def _other_json(rng: random.Random, content: bytes) -> bytes:
    """One or more values changed, or text that parsers stumble over."""
    if rng.random() < 0.2:
        return hostile_json(rng, json.loads(content))
    read = json.loads(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        place = read
        while True:
            keys = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = rng.choice(keys)
            if not (isinstance(place[key], dict | list) and place[key]) or rng.random() < 0.1:
                break
            place = place[key]
        place[key] = _other_value(rng, place[key])
        if not read:
            break
    return json.dumps(read).encode()


def _other_value(rng: random.Random, value: object) -> object:
    anything = [None, [], {}, "", 0, 1, -1, True, 0.5, 1e308, 5e-324, 2**53 + 1, 10**18, "x" * 5000]
    if rng.random() < 0.3:
        return rng.choice(anything)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value * 2, value + 1, value - 1, value // 2, 10 * value])
    if isinstance(value, float):
        return rng.choice([value / 2, value * 1.001, 1 - value, value * 0.9])
    return rng.choice([str(value).upper(), str(value)[:-1], "window", "stopping", "0" * 64])


def run(folder: Path, arguments: list[str]) -> Answer:
    """Run the command in a folder, as its own process would."""
    from offrecord import cli

    out, err = io.StringIO(), io.StringIO()
    before, given = Path.cwd(), sys.stdin
    os.environ["OFFRECORD_TRACEBACK"] = "1"  # a fault is raised, not only said
    os.environ["XDG_DATA_HOME"] = str(folder / "key")
    os.chdir(folder)
    sys.stdin = io.StringIO("low\n")
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = cli.main(arguments)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 3
    finally:
        os.chdir(before)
        sys.stdin = given
    return Answer(code, out.getvalue(), err.getvalue())


def check(kind: str, folder: Path, said: Answer) -> None:
    """ViolationError for anything that must not be."""
    verb = re.match(r"\w+", kind)[0]
    if said.code not in ((0, 1, 2) if verb in ("verify", "attack", "report") else (0, 2)):
        raise ViolationError(f"exit code {said.code}: {said.err!r:.200}")
    wrong = [line for line in said.err.splitlines() if not line.startswith(_ASIDE)]
    if said.code == 2 and not (len(wrong) == 1 and wrong[0].startswith("offrecord: ")):
        raise ViolationError(f"not one line: {said.err!r:.300}")
    if said.code == 2 and said.out:
        raise ViolationError(f"exit code 2, but on standard output {said.out!r:.200}")
    if left := [file.name for file in folder.rglob("*.partial")]:
        raise ViolationError(f"{left[0]} is left")
    released, certificate = (
        folder / "out" / "out.csv",
        folder / "out" / f"out.csv{CERTIFICATE[12:]}",
    )
    if verb == "redact" and (released.exists() != certificate.exists()):
        raise ViolationError("an output without its certificate, or the other way round")
    if verb == "redact" and released.exists():
        digest = json.loads(certificate.read_bytes())["output"]["sha256"]
        if digest != hashlib.sha256(released.read_bytes()).hexdigest() or said.code == 2:
            raise ViolationError("another SHA-256 in the certificate, or an output after an error")
    streams = re.sub(r"id '[^']*'", "", said.out + said.err).encode("utf-8", "replace")
    if verb == "redact" and (found := needles.found_in(streams, (needles.KEPT, needles.DROPPED))):
        raise ViolationError(f"needle: {found} in {said.err!r:.300}")


def _check_rules(content: dict[str, object]) -> None:
    """What was verified keeps its ε in other draws too, by the package's own evaluation."""
    if content["kind"] != "rules":
        return
    model = Model.from_dict({"format": FORMAT, "version": VERSION, "model": content["model"]})
    promise, policy = model.promise, TablePolicy.from_dict(content["policy"])
    epsilon = min(content["claim"]["epsilon"], policy.epsilon)
    drawn = ACCEPTANCE[promise.coverage].drawn if promise.coverage else 0
    above = int((policy.leakages(promise.members(drawn, 7)) > epsilon + 1e-9).sum())
    if above > 1.3 * (1 - (promise.coverage or 1.0)) * drawn:  # 5 deviations above the promise
        raise ViolationError(f"verified, but {above} of {drawn} chains exceed ε")


CAMPAIGN = Campaign(
    {kind: partial(_changed_file, kind) for kind in COMMANDS}
    | {f"{verb}, options": partial(_other_options, verb) for verb in ("redact", "fit", "verify")},
    limit=120.0,
    words="Every verb that reads files, with one file changed (bits, cells, lines, types,"
    " encodings, JSON) or with other options. A violation is a traceback, a hang, another exit code"
    " than 0, 1 or 2, more than one line of error, partial files, a release that does not match its"
    " certificate, a cell of a private record in what is left or said, or a certificate that is"
    " verified although its rules leak more than its ε in too many plausible chains.",
)
