"""A command that is good, for tests to spoil: what is wrong is refused in one line that says what
to do, with exit code 2 and not a byte written.
"""

from datetime import datetime
from pathlib import Path

import polars as pl

import offrecord as off
from command_line import flags
from offrecord import cli
from table_files import write

ROWS = 8
TABLE = {
    "room": ["a"] * 4 + ["b"] * 4,
    "hour": [1, 2, 3, 4] * 2,
    "state": [0, 0, 1, 1] * 2,
    "hidden": [False, True, False, False, False, False, False, False],
}
MODEL = off.MarkovChain([[0.9, 0.1], [0.2, 0.8]])
REDACT = {
    "value": "state",
    "order": "hour",
    "by": "room",
    "private": "hidden",
    "model": "model.json",
    "epsilon": 1,
    "dataset": "rooms",
    "output": "out.csv",
}
ASIDE = ("offrecord: warning: ", "offrecord: note: ")
FIT_OPTIONS = {"value": "state", "order": "hour", "by": "room", "output": "new.json"}


class Desk:
    """A folder with a table and a model, and a command line whose every trace is looked at."""

    def __init__(self, folder, capsys):
        self.folder, self.capsys = folder, capsys
        self.key = folder / "share" / "offrecord" / "key.json"
        MODEL.save("model.json")
        self.table = self.write("table.parquet")

    def write(self, name, columns=None, **changed):
        """A table file; the standard table with some columns changed unless columns are given."""
        frame = pl.DataFrame(TABLE | changed if columns is None else columns)
        return write(frame, name)

    def run(self, *arguments):
        code = cli.main(list(map(str, arguments)))
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def redact(self, table=None, **changed):
        """The arguments of a good redact, with some changed; None leaves one out, True is
        a flag.
        """
        return ["redact", table or self.table, *flags(REDACT | changed)]

    def fit(self, table=None, **changed):
        """The arguments of a good fit, with some changed."""
        return ["fit", table or self.table, *flags(FIT_OPTIONS | changed)]

    def works(self, *arguments):
        code, out, err = self.run(*arguments)
        assert (code, all(line.startswith(ASIDE) for line in err.splitlines())) == (0, True), err
        return out

    def fails(self, arguments, *said, never=()):
        """Assert that it is refused in one line which holds all of `said`, and that every file
        stays as it was.
        """
        before = self.files()
        code, out, err = self.run(*arguments)
        lines = [line for line in err.splitlines() if not line.startswith(ASIDE)]
        assert (code, out, len(lines)) == (2, "", 1), err
        assert lines[0].startswith("offrecord: ")
        assert "internal error" not in err
        assert "Traceback" not in err
        assert [text for text in said if text not in lines[0]] == [], lines[0]
        assert [text for text in never if text in err] == [], err
        assert self.files() == before

    def files(self):
        """What every file holds; locks apart, which hold nothing, and a key under which nothing has
        left.
        """
        ledger = self.key.with_name("key.ledger.json")
        unused = ledger.exists() and '"releases": {}' in ledger.read_text()
        apart = {self.key, ledger, *self.key.parents} if unused else set()
        names = [
            name for name in self.folder.rglob("*") if name.suffix != ".lock" and name not in apart
        ]
        return {str(name): name.read_bytes() if name.is_file() else None for name in names}


HOURS = [datetime(2013, 3, 31, hour) for hour in range(4)] * 2
FIT = {"model": None, "fit": True}


def with_bytes(name, content):
    Path(name).write_bytes(content)
    return name


CUT = ["stops in the middle of a line", "cut short", "merely lacks it: echo >>"]
