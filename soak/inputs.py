"""Files and options that are not what they should be, to every verb: an answer in time, exit code
0, 1 or 2, one line of what is wrong, and no cell of a private record anywhere.

What brings a new answer is kept and changed further, so that cases get past what is looked at
first.
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
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

import offrecord as off
from soak import needles
from soak.campaign import Case, Notes, ViolationError
from soak.frames import EARLY, table, written_oddly
from soak.texts import hostile_json, hostile_table, noisy

ENDINGS = (".csv", ".parquet", ".arrow", ".ndjson", ".csv.gz", ".ndjson.zst", ".xlsx")
COLUMNS = ["--value", "v", "--order", "t", "--by", "id"]
REDACT = [
    *COLUMNS, "--keep", "k", "--private-list", "list.csv", "--epsilon", "1", "--dataset", "e",
    "--key-file", "key/key.json", "-o", "out/out.csv", "--accept-model",
]  # fmt: skip
BY_WINDOW = ["redact", "table.csv", *REDACT, "--model", "model.json", "--mechanism", "window"]
#: Releases after others, and of a table that grows, under keys that have released before. Of an
#: option that is there twice, the second counts.
AFTER = [
    *BY_WINDOW, "--dataset", "d", "--epsilon", "0.7", "--joint-epsilon", "9", "--after",
    "released.csv.certificate.json",
]  # fmt: skip
GROWING = [
    *BY_WINDOW, "--dataset", "g", "--key-file", "key/growing.json", "--step", "1", "--growing",
    "--lag", "8",
]  # fmt: skip
#: What is run, and the file that is changed: its name, or a pattern that one file has.
COMMANDS: dict[str, tuple[list[str], str]] = {
    **{
        f"redact, table {ending}": (
            ["redact", f"table{ending}", *REDACT, "--model", "model.json", "--mechanism", "window"],
            f"table{ending}",
        )
        for ending in ENDINGS
    },
    **{
        f"fit, table {ending}": (
            ["fit", f"table{ending}", *COLUMNS, "-o", "new.json", "--no-audit"], f"table{ending}",
        )
        for ending in ENDINGS
    },
    **{
        f"redact --stream, table {ending}": (
            [
                "redact", f"table{ending}", *REDACT, "--model", "model.json", "--mechanism",
                "window", "--stream",
            ],
            f"table{ending}",
        )
        for ending in (".csv", ".parquet", ".ndjson")
    },
    "redact, list": (BY_WINDOW, "list.csv"),
    "redact, list .parquet": ([*BY_WINDOW, "--private-list", "list.parquet"], "list.parquet"),
    "redact, model": (BY_WINDOW, "model.json"),
    "redact, designs": ([*BY_WINDOW, "--designs", "designs.json"], "designs.json"),
    "redact, key": (BY_WINDOW, "key/key.json"),
    "redact, ledger": (BY_WINDOW, "key/key.ledger.json"),
    **{
        f"redact --after, {what}": (AFTER, name)
        for what, name in {
            "certificate": "released.csv.certificate.json", "released": "released.csv",
            "table": "table.csv", "list": "list.csv", "ledger": "key/key.ledger.json",
            "kept": "key/key.releases/*.npz",
        }.items()
    },
    **{
        f"redact --growing, {what}": (GROWING, name)
        for what, name in {
            "table": "table.csv", "list": "list.csv", "model": "model.json",
            "ledger": "key/growing.ledger.json",
        }.items()
    },
    "redact --growing --stream, ledger": ([*GROWING, "--stream"], "key/growing.ledger.json"),
    "verify, certificate": (
        ["verify", "released.csv.certificate.json", "released.csv"],
        "released.csv.certificate.json",
    ),
    "verify, released": (
        [
            "verify", "released.csv.certificate.json", "released.csv", "--private-list", "list.csv",
            "--key-file", "key/key.json",
        ],
        "released.csv",
    ),
    "verify, released .parquet": (
        ["verify", "released.parquet.certificate.json", "released.parquet"], "released.parquet",
    ),
    "verify, list": (
        [
            "verify", "released.csv.certificate.json", "released.csv", "--private-list", "list.csv",
        ],
        "list.csv",
    ),
    "verify, key": (
        [
            "verify", "released.csv.certificate.json", "released.csv", "--private-list", "list.csv",
            "--key-file", "key/key.json",
        ],
        "key/key.json",
    ),
    "report, certificate": (
        [
            "report", "released.csv.certificate.json", "released.csv", "--private-list", "list.csv",
            "-o", "out/report.html",
        ],
        "released.csv.certificate.json",
    ),
    "attack, released": (["attack", "released.csv", "--private-list", "list.csv"], "released.csv"),
    "attack, released .parquet": (
        ["attack", "released.parquet", "--private-list", "list.parquet"], "released.parquet",
    ),
    "attack, certificate": (
        ["attack", "released.csv", "--private-list", "list.csv"], "released.csv.certificate.json",
    ),
    "attack, list": (["attack", "released.csv", "--private-list", "list.csv"], "list.csv"),
    "attack, original": (
        ["attack", "released.csv", "--private-list", "list.csv", "--original", "table.csv"],
        "table.csv",
    ),
    "design, model": (
        [
            "design", "--model", "model.json", "--n", "9", "--private", "4", "--epsilon", "1",
            "--mechanism", "window", "-o", "new.json",
        ],
        "model.json",
    ),
    "compare, table .parquet": (
        [
            "compare", "table.parquet", *COLUMNS, "--private-list", "list.csv", "--model",
            "model.json", "--epsilon", "1", "--mechanism", "window",
        ],
        "table.parquet",
    ),
    "compare, model": (
        [
            "compare", "--model", "model.json", "--n", "6", "--private", "3", "--epsilon", "1",
            "--mechanism", "window",
        ],
        "model.json",
    ),
    "answer, policy": (
        ["answer", "--policy", "policy.json", "--record", "2", "--key-file", "key/key.json"],
        "policy.json",
    ),
    "answer, value": (
        ["answer", "--policy", "policy.json", "--record", "2", "--key-file", "key/key.json"],
        "stdin",
    ),
    "answer, ledger": (
        ["answer", "--policy", "policy.json", "--record", "2", "--key-file", "key/key.json"],
        "key/key.ledger.json",
    ),
    "ledger, ledger": (["ledger", "show", "d", "--key-file", "key/key.json"],
    "key/key.ledger.json"),
    "ledger, key": (["ledger", "list", "--key-file", "key/key.json"], "key/key.json"),
    "key, key": (["key", "show-id", "--key-file", "key/key.json"], "key/key.json"),
}  # fmt: skip
#: Of these every option may be another, and files are as they should be.
OPTIONS: dict[str, list[str]] = {
    "redact, options": COMMANDS["redact, table .csv"][0],
    "redact --after, options": AFTER,
    "redact --growing, options": GROWING,
    "fit, options": COMMANDS["fit, table .csv"][0],
    "verify, options": COMMANDS["verify, released"][0],
    "attack, options": COMMANDS["attack, original"][0],
    "design, options": [
        "design", "--alpha", "0.1", "--beta", "0.3", "--n", "9", "--private", "4", "--epsilon", "1",
    ],
    "compare, options": [
        "compare", "--alpha", "0.1", "--beta", "0.3", "--n", "6", "--private", "3", "--epsilon",
        "1",
    ],
    "answer, options": COMMANDS["answer, value"][0],
    "ledger, options": ["ledger", "forget", "d", "--release", "1", "--because",
    "never published", "--key-file",
        "key/key.json",
    ],
    "key, options": ["key", "new", "--key-file", "key/other.json"],
}  # fmt: skip
#: Cells of private records are nowhere in what leaves, whatever else was changed.
_PRIVATE_STAYS = (
    "redact, model", "redact, designs", "redact, key", "redact, ledger",
    "redact --after, certificate", "redact --after, released", "redact --after, ledger",
    "redact --after, kept", "redact --growing, model", "redact --growing, ledger",
    "redact --growing --stream, ledger",
)  # fmt: skip
_ASIDE = ("offrecord: warning: ", "offrecord: note: ")
_MOST_KEPT = 300  # files of a kind that brought a new answer


class InputsCampaign:
    """Every verb, every file that it reads, and its options."""

    name = "inputs"
    least = 100_000
    limit = 120.0
    memory = 6 << 30
    kinds: ClassVar = dict.fromkeys((*COMMANDS, *OPTIONS), 1.0)

    def prepared(self, folder: Path) -> None:
        """Good files of every kind."""
        good = folder / "inputs" / "good"
        if not (good / "whole").exists():
            _make_good(good)

    def ready(self, folder: Path, kind: str) -> None:
        """The command, and what its verbs import when they are asked."""
        _imported()

    def run(self, case: Case, folder: Path, store: Path) -> Notes:
        """Change a file or an option, and run the verb in a folder of its own."""
        here = folder / "case"
        kept = store / "found" / f"inputs-{case.kind}-{case.batch}-case-{case.number}"
        if kept.exists():  # once more, just as it was
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(kept, here)
            os.mkfifo(here / "pipe")
            given = json.loads((here / "arguments.json").read_text())
            fresh, arguments, changed, stdin = (
                None,
                given["arguments"],
                given["file"],
                given["stdin"],
            )
        else:
            fresh = _Pool(store, case.kind)
            arguments, changed, stdin = _laid_out(case, here, store, fresh)
        try:
            told = _Told.of(here, arguments, stdin)
            _check(case.kind, here, told, changed)
        except BaseException:
            apart = shutil.ignore_patterns("pipe")
            shutil.copytree(here, folder / f"case-{case.number}", ignore=apart)
            raise
        notes: Notes = Counter({f"exit {told.code}": 1})
        if fresh is not None and changed is not None:
            notes["kept to change further"] += fresh.keep(told.signature, here / changed)
        return notes


@cache
def _imported() -> None:
    import typer.main

    import offrecord.attack
    import offrecord.cli
    import offrecord.tables.engines.memory
    import offrecord.tables.engines.stream
    import offrecord.verify.table  # noqa: F401

    # The words of all verbs, put together once: it takes as long as all the rest of a case.
    typer.main.get_command = cache(typer.main.get_command)


# ---- good files


def _make_good(good: Path) -> None:
    import table_files
    from offrecord.release.keys import Key

    shutil.rmtree(good, ignore_errors=True)
    good.mkdir(parents=True)
    frame, private = table()
    for ending in ENDINGS:
        table_files.write(frame, good / f"table{ending}")
    private.write_csv(good / "list.csv")
    private.write_parquet(good / "list.parquet")
    labels = ["low", "mid", needles.VALUE]
    chain = off.MarkovChain([[0.6, 0.3, 0.1], [0.3, 0.5, 0.2], [0.2, 0.3, 0.5]], labels=labels)
    chain.save(good / "model.json")
    off.design(off.Problem(chain, 9, [4], 1.0), "window").save(good / "policy.json")
    Key.new(good / "key" / "key.json")
    options = dict(
        value="v", order="t", by="id", keep=["k"], private_list=private, model=chain, epsilon=1.0,
        dataset="d", key_file=good / "key" / "key.json", mechanism="window", accept_model=True,
        designs=good / "designs.json",
    )  # fmt: skip
    for name in ("released.csv", "released.parquet"):
        off.redact(frame, **options).write(good / name)
    (good / "stdin").write_text("low\n")
    early = frame.filter(frame["t"] < EARLY), private.filter(private["t"] < EARLY)
    options |= {"private_list": early[1], "dataset": "g", "growing": True, "lag": 8, "step": 1}
    options["key_file"] = good / "key" / "growing.json"
    off.redact(early[0], **options).write(good / "grown.csv")
    (good / "whole").touch()


# ---- changes


class _Pool:
    """What brought a new answer of a verb, beside the good file."""

    def __init__(self, store: Path, kind: str) -> None:
        self.folder = store / "inputs" / "pool" / kind.replace(" ", "_")

    def any(self, rng: random.Random, good: bytes) -> bytes:
        """The good one mostly."""
        if rng.random() < 0.5 or not self.folder.is_dir():
            return good
        kept = sorted(os.listdir(self.folder))
        return (self.folder / rng.choice(kept)).read_bytes() if kept else good

    def keep(self, signature: str, file: Path) -> int:
        """1 if this answer is new."""
        name = hashlib.sha256(signature.encode()).hexdigest()[:16]
        target = self.folder / name
        if target.exists() or not file.is_file() or file.stat().st_size > 1 << 16:
            return 0
        self.folder.mkdir(parents=True, exist_ok=True)
        if len(os.listdir(self.folder)) >= _MOST_KEPT:
            return 0
        part = self.folder / f".{name}.{os.getpid()}"
        shutil.copyfile(file, part)
        os.replace(part, target)
        return 1


def _laid_out(
    case: Case, here: Path, store: Path, pool: _Pool
) -> tuple[list[str], str | None, str]:
    """The files of a case, the words of its command, which file was changed, and what is said to
    it.
    """
    rng = case.random()
    good = store / "inputs" / "good"
    shutil.rmtree(here, ignore_errors=True)
    (here / "key").mkdir(parents=True)
    (here / "out").mkdir()
    os.mkfifo(here / "pipe")  # to which nobody writes
    named: str | None = None
    if case.kind in COMMANDS:
        arguments, named = COMMANDS[case.kind]
        named = str(next(good.glob(named)).relative_to(good))
    else:
        arguments = _other_options(rng, OPTIONS[case.kind])
    there = {str(file.relative_to(good)) for file in good.rglob("*") if file.is_file()}
    needed = there.intersection(arguments)
    needed |= {name for name in there if name.startswith("key/")}
    needed |= {"released.csv.certificate.json", "released.parquet.certificate.json"}
    if case.kind in OPTIONS:
        needed |= {"list.csv", "model.json", "table.csv", "released.csv", "policy.json"}
    if "--after" in arguments:
        needed |= {"released.csv"}
    for name in needed:
        (here / name).parent.mkdir(exist_ok=True)
    for name in needed - {named}:
        shutil.copy(good / name, here / name)
    stdin = (good / "stdin").read_text()
    if named is not None:
        content = _other_content(rng, named, pool.any(rng, (good / named).read_bytes()))
        (here / named).write_bytes(content)
        if named in ("released.csv", "released.parquet") and rng.random() < 0.7:
            _certify(here / named)
        if named == "stdin":
            stdin = content.decode("utf-8", "surrogateescape")
        if named == "key/key.json":
            (here / named).chmod(0o600)
        arguments = _with_more(rng, case.kind, list(arguments))
    said = {"arguments": arguments, "file": named, "stdin": stdin}
    (here / "arguments.json").write_text(json.dumps(said))
    return arguments, named, stdin


def _certify(released: Path) -> None:
    """As whoever altered a table would: its certificate says so."""
    file = released.with_name(f"{released.name}.certificate.json")
    content = json.loads(file.read_bytes())
    content["output"]["sha256"] = hashlib.sha256(released.read_bytes()).hexdigest()
    file.write_text(json.dumps(content))


def _with_more(rng: random.Random, kind: str, arguments: list[str]) -> list[str]:
    """An option besides, at times."""
    if rng.random() < 0.3:
        arguments.append("--json")
    verb = arguments[0]
    more = {
        "redact": [
            ["--step", "1"], ["--dry-run"], ["--explain", "out/explain.csv"], ["--keep-all"],
            ["--problems", "out/problems.csv"], ["--publish-positions"], ["--protect", "each"],
            ["--max-rows", "100000"], ["--mechanism", "3r-relaxed"], ["--exact-model"],
            ["--drop", "ann"], ["--order-unit", "0.5"], ["--merge", "rare"], ["--step", "1h"],
            ["--opted-in"], ["--joint-epsilon", "inf"], ["--lag", "2"], ["--lag", "300"],
            ["--another-release"],
        ],
        "fit": [
            ["--merge", "rare"], ["--chain-order", "2"], ["--private-list", "list.csv"],
            ["--step", "1"], ["--chain-order", "1"], ["--fit-distance", "2"], ["--states", "2"],
            ["--phase", "weekday"], ["--bins", "1,2"], ["--order-unit", "0.5"],
        ],
        "attack": [["--strict"]],
    }.get(verb)  # fmt: skip
    if more is not None and rng.random() < 0.4:
        arguments += rng.choice(more)
    return arguments


def _other_content(rng: random.Random, name: str, content: bytes) -> bytes:  # noqa: PLR0911 - a change each
    """Another content of a file, as its ending says it is made."""
    if rng.random() < 0.15:
        return noisy(rng, content)
    if name.endswith(".json"):
        return _other_json(rng, content)
    if name.startswith("table") and rng.random() < 0.3:
        return written_oddly(rng, name)
    if name.endswith(".csv.gz"):
        return _repacked(rng, content, gzip.decompress, gzip.compress)
    if name.endswith(".ndjson.zst"):
        from backports import zstd

        return _repacked(rng, content, zstd.decompress, zstd.compress)
    if name.endswith(".npz"):
        return _other_arrays(rng, content)
    if name.endswith(".xlsx"):
        return _other_workbook(rng, content)
    if name.endswith((".csv", ".ndjson", "stdin")):
        return hostile_table(rng, content) if rng.random() < 0.7 else noisy(rng, content)
    return noisy(rng, content)


def _other_json(rng: random.Random, content: bytes) -> bytes:
    from mutations import at, changed, leaves, mutated, others

    try:
        read = json.loads(content)
        paths = list(leaves(read))
    except (ValueError, RecursionError):
        return noisy(rng, content)
    if not isinstance(read, dict) or not paths:
        return noisy(rng, content)
    kind = rng.random()
    try:
        if kind < 0.35:
            path = rng.choice(paths)
            return json.dumps(changed(read, path, rng.choice(others(at(read, path))))).encode()
        if kind < 0.75:
            return json.dumps(mutated(read, rng)).encode()
        if kind < 0.9:
            return hostile_json(rng, read)
    except (IndexError, KeyError, TypeError):
        pass
    return noisy(rng, content)


def _repacked(
    rng: random.Random,
    content: bytes,
    unpack: Callable[[bytes], bytes],
    pack: Callable[[bytes], bytes],
) -> bytes:
    """The packed text changed, or more after it, or a bomb."""
    kind = rng.random()
    try:
        plain = unpack(content)
    except Exception:  # what was kept may be damaged
        return noisy(rng, content)
    if kind < 0.7:
        return pack(hostile_table(rng, plain))
    if kind < 0.8:
        return content + rng.choice([content, b"\0" * 9, pack(b""), content[:20]])
    if kind < 0.82:
        return pack(plain + rng.choice([b"\0", b"1,", b"\n", b"a"]) * (1 << 24))
    return noisy(rng, content)


def _other_workbook(rng: random.Random, content: bytes) -> bytes:
    """A part of a workbook changed."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            parts = {name: packed.read(name) for name in packed.namelist()}
    except Exception:  # what was kept may be damaged
        return noisy(rng, content)
    if not parts:
        return noisy(rng, content)
    name = rng.choice(sorted(parts))
    if rng.random() < 0.1:
        del parts[name]
    else:
        parts[name] = noisy(rng, parts[name])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for one, part in parts.items():
            packed.writestr(one, part)
    return out.getvalue()


def _other_arrays(rng: random.Random, content: bytes) -> bytes:
    """An array of what is kept beside a key changed."""
    try:
        with np.load(io.BytesIO(content)) as packed:
            arrays = {name: packed[name] for name in packed.files}
    except Exception:  # what was kept may be damaged
        return noisy(rng, content)
    if not arrays or rng.random() < 0.2:
        return noisy(rng, content)
    name = rng.choice(sorted(arrays))
    one = arrays[name]
    kind = rng.randrange(7)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[name] = one.astype(rng.choice([np.float64, np.int8, np.int32, np.uint64, str, bool]))
    elif kind == 2:
        arrays[name] = rng.choice([one.ravel(), one.T, one[None], one[:0], one[:1], one[..., :1]])
    elif kind == 3:
        arrays[name] = np.concatenate((one, one))
    elif kind == 4:
        arrays[name] = one[::-1]
    elif one.size:
        one = one.copy()
        value = rng.choice([0, 1, 2, 3, 7, 19, 20, 21, 255, 2**31, 2**62, 2**63 - 1, -1, -(2**63)])
        one.flat[rng.randrange(one.size)] = np.int64(value).astype(one.dtype)
        arrays[name] = one
    out = io.BytesIO()
    rng.choice([np.savez, np.savez, np.savez_compressed])(out, **arrays)
    return out.getvalue() if rng.random() < 0.8 else noisy(rng, out.getvalue())


#: Names of files lie in the folder of the case, all of them: what is run may write there.
_WORDS = (
    "", "0", "1", "-1", "1e400", "nan", "inf", "-inf", "1e-320", "0.5", "2", "3",
    "99999999999999999999",
    "v", "t", "id", "k", "x", "no-such", "v,v", "1,2", "1-3", "3-1", "1-", "-", "1:2:3",
    "0.1:3:30", "a" * 5000,
    "é", "⊥", "\u202e", "table.csv", "list.csv", "model.json", "key/key.json", "out",
    "out/new.csv", ".", "..", "pipe",
    "best-local", "window", "owner", "quilt", "3r-relaxed", "run", "each", "1m",
    "1h", "1d", "1mo",
    "rare", "csv", "parquet", "ipc", "ndjson", "excel", ",", ";", "\t", "utf-8", "latin-1",
    "auto", "hour",
    "weekday", "never published", "all", "released.csv", "released.csv.certificate.json",
    "policy.json", "=1",
)  # fmt: skip


def _other_options(rng: random.Random, arguments: list[str]) -> list[str]:
    """Some words of a command other ones, left out, twice, or more of them."""
    words = list(arguments)
    names = _options_of(words[0])
    for _ in range(rng.choice([1, 1, 2, 3])):
        kind = rng.randrange(5)
        at = rng.randrange(1, len(words)) if len(words) > 1 else 0
        if kind == 0 and at:
            words[at] = rng.choice(_WORDS)
        elif kind == 1 and at:
            del words[at]
        elif kind == 2 and names:
            name = rng.choice(names)
            words += [name] if rng.random() < 0.3 else [name, rng.choice(_WORDS)]
        elif kind == 3 and at:
            words.insert(at, words[at])
        elif names:
            name = rng.choice(names)
            words += [f"{name}={rng.choice(_WORDS)}"]
    if {"--help", "--picture"} & {word.partition("=")[0] for word in words}:
        words = [word for word in words if word.partition("=")[0] not in ("--help", "--picture")]
    return words


def _options_of(verb: str) -> list[str]:
    """The names of a verb's options, from its help."""
    if verb not in _NAMES:
        out = io.StringIO()
        from offrecord import cli

        with redirect_stdout(out):
            cli.main([verb, "--help"])
        _NAMES[verb] = sorted(set(re.findall(r"--[a-z][a-z-]+", out.getvalue())))
    return _NAMES[verb]


_NAMES: dict[str, list[str]] = {}


# ---- what a run says


class _Told:
    """Exit code and both streams of a run."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err

    @classmethod
    def of(cls, here: Path, arguments: list[str], stdin: str) -> _Told:
        """Run the command in a folder, as its own process would."""
        from offrecord import cli

        out, err = io.StringIO(), io.StringIO()
        before, given = os.getcwd(), sys.stdin
        os.environ["OFFRECORD_TRACEBACK"] = "1"  # a fault is raised, not only said
        os.environ["XDG_DATA_HOME"] = str(here / "key")
        os.chdir(here)
        sys.stdin = io.StringIO(stdin)
        _silence_engine()
        try:
            with redirect_stdout(out), redirect_stderr(err):
                code = cli.main(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 3
        finally:
            os.chdir(before)
            sys.stdin = given
        return cls(code, out.getvalue(), err.getvalue())

    @property
    def signature(self) -> str:
        """What is said, without what it is said about."""
        said = re.sub(
            r"'[^']*'|\"[^\"]*\"|\d[\d.,e+-]*|[\w./-]+\.(csv|json|parquet)\S*", "#", self.err
        )
        return f"{self.code} {said[:300]}"


@cache
def _silence_engine() -> None:
    """A panic of the table engine writes to standard error by itself; the command sends it nowhere
    too.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


def _check(kind: str, here: Path, told: _Told, changed: str | None) -> None:
    """ViolationError for anything that must not be."""
    verb = kind.partition(",")[0].partition(" ")[0]
    if told.code not in ((0, 1, 2) if verb in ("verify", "attack", "report") else (0, 2)):
        raise ViolationError(f"exit code {told.code}: {told.err!r:.200}")
    lines = told.err.splitlines()
    wrong = [line for line in lines if not line.startswith(_ASIDE)]
    if told.code == 2 and not (len(wrong) == 1 and wrong[0].startswith("offrecord: ")):
        raise ViolationError(f"not one line: {told.err!r:.300}")
    if told.code != 2 and wrong:
        raise ViolationError(f"exit code {told.code}, but {wrong[0]!r:.200}")
    if told.code == 2 and told.out:
        raise ViolationError(f"exit code 2, but on standard output {told.out!r:.200}")
    left = [file.name for file in here.rglob("*.partial")]
    if left:
        raise ViolationError(f"{left[0]} is left")
    if verb == "redact" and changed is not None:
        _check_release(here, told)
    _check_needles(kind, here, told, changed)


def _check_release(here: Path, told: _Told) -> None:
    out, certificate = here / "out" / "out.csv", here / "out" / "out.csv.certificate.json"
    if out.exists() != certificate.exists() or (told.code == 2 and out.exists()):
        raise ViolationError("an output without its certificate, or after an error")
    if out.exists():
        said = json.loads(certificate.read_bytes())["output"]["sha256"]
        if said != hashlib.sha256(out.read_bytes()).hexdigest():
            raise ViolationError("another SHA-256 in the certificate")


def _check_needles(kind: str, here: Path, told: _Told, changed: str | None) -> None:
    if changed is None or "model" in kind or not kind.startswith(("redact", "fit")):
        return
    given = json.loads((here / "arguments.json").read_text())["arguments"]
    # names of chains and rows are public, wherever they come from
    said = re.sub(r"id '[^']*'", "", told.out + told.err)
    streams = said.encode("utf-8", "replace")
    if kind in _PRIVATE_STAYS and "--keep-all" not in given:
        which = needles.found_in(streams, (needles.KEPT, needles.DROPPED))
        apart = {"table.csv", "list.csv", "model.json", "arguments.json", changed}
        which = which or needles.found_under(here, apart)
        if which is not None:
            raise ViolationError(f"needle: {which}")
    elif kind.startswith("redact") and (here / changed).exists():
        cells = (needles.KEPT, needles.DROPPED)
        if "designs" not in kind:  # which name the labels of their model
            cells = (*cells, needles.VALUE)
        which = needles.found_in(streams, cells)
        if which is not None:
            raise ViolationError(f"needle: {which} in what is said: {told.err!r:.300}")
