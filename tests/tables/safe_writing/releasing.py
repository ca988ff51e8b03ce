"""Releases, and all that an attacker sees of them: the released file, its certificate and report,
and both output streams.
"""

import hashlib
import re
import sys
from pathlib import Path

from needles import NEEDLE
from offrecord import cli
from twins import SUFFIX, TEXTS, model, written

COMMAND = str(Path(sys.executable).with_name("offrecord"))
COLUMNS = ("--value", "v", "--order", "t", "--by", "id")
QUICK = ("--epsilon", "1", "--mechanism", "3r-relaxed")


class RefusedError(Exception):
    """A column that cannot be kept."""


class Desk:
    """Runs releases, each in a folder of its own."""

    def __init__(self, folder, key, store, capsys, monkeypatch):
        self.folder, self.key, self.store, self.capsys, self.monkeypatch = (
            folder,
            key,
            store,
            capsys,
            monkeypatch,
        )
        self.dataset = folder.name

    def model_options(self, labels):
        name = hashlib.sha256(repr(labels).encode()).hexdigest()[:12]
        file = self.store / f"{name}.model.json"
        if not file.exists():
            model(labels).save(file)
        return ["--model", file]

    def run(self, folder, *arguments):
        """Exit code, standard output and standard error, times apart."""
        self.monkeypatch.chdir(folder)
        self.capsys.readouterr()
        code = cli.main([str(argument) for argument in arguments])
        out, err = self.capsys.readouterr()
        return code, re.sub(r"(?m)^time .*$|\"seconds\": [\d.e-]+", "", out), err

    def release(
        self,
        name,
        frame,
        source,
        target,
        *options,
        rows=None,
        fit=False,
        labels=None,
        private=("--private", "p"),
    ):
        """Everything an attacker may see of one release: files by name, and both streams."""
        folder = self.folder / name
        folder.mkdir()
        given = self.folder / f"{name} input"
        given.mkdir()
        path = written(frame, given / f"table{SUFFIX[source]}", rows)
        how = ["--fit"] if fit else self.model_options(labels)
        out = f"out{SUFFIX[target]}"
        arguments = ["redact", path, *COLUMNS, *private, *QUICK, *how, "--dataset", self.dataset]
        arguments += ["--key-file", self.key, "-o", out]
        code, stdout, stderr = self.run(folder, *arguments, *options)
        if (
            code == 2
            and re.search(r"offrecord: column '\w+' cannot be kept: .+\n$", stderr)
            and NEEDLE not in stderr
        ):
            raise RefusedError
        assert code == 0, stderr
        seen = {file.name: file.read_bytes() for file in folder.iterdir()}
        beside = {f"{out}.certificate.json", f"{out}.report.html"}
        assert set(seen) >= {out, *beside}
        return seen | {"stdout": stdout.encode(), "stderr": stderr.replace(str(given), "").encode()}


def assert_same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert one[name] == other[name], f"{name} tells the twins apart"


def bad_input(desk, name, content, *options, labels=TEXTS):
    """What is said about a table that cannot be redacted."""
    given, folder = desk.folder / name, desk.folder / "out"
    folder.mkdir(exist_ok=True)
    if isinstance(content, bytes):
        given.write_bytes(content)
    else:
        written(content, given)
    private = () if "--private-list" in options else ("--private", "p")
    arguments = [
        "redact",
        given,
        *COLUMNS,
        *private,
        *QUICK,
        *desk.model_options(labels),
        "--dataset",
        f"{desk.dataset} {name}",
    ]
    code, out, err = desk.run(folder, *arguments, "--key-file", desk.key, "-o", "out.csv", *options)
    assert (code, out) == (2, "")
    assert re.fullmatch(r"offrecord: .+\n", err), err
    assert len(err) < 400
    assert NEEDLE not in err
    assert "internal error" not in err
    assert list(folder.iterdir()) == []
    return err
