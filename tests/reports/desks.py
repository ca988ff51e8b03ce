"""A small table of two values, its opt-outs, and where they are released."""

import numpy as np
import polars as pl

import offrecord as off
from definition import samples
from offrecord.release.keys import Key

CHAIN = off.MarkovChain.binary(0.1, 0.3)
PRIVATE = [(0, 12), (2, 0), (2, 30), (2, 31), (5, 20)]


def drawn(chain=CHAIN, count=8, n=40, seed=1):
    values = samples(chain, count, n, np.random.default_rng(seed))
    labels = np.array(chain.labels)
    return pl.DataFrame(
        {
            "who": np.repeat(np.arange(count), n),
            "t": np.tile(np.arange(n), count),
            "v": labels[values.ravel()],
        }
    )


class Desk:
    """Releases into a folder, and what was given for them."""

    def __init__(self, folder):
        (folder / "keys").mkdir()
        self.folder, self.key = folder, Key.new(folder / "keys" / "key.json").file
        self.list = folder / "list.csv"
        pl.DataFrame(PRIVATE, schema=["who", "t"], orient="row").write_csv(self.list)
        self.frame = drawn()
        self.model = folder / "model.json"
        CHAIN.save(self.model)

    def redacted(self, frame=None, **options):
        given = {"value": "v", "order": "t", "by": "who", "model": CHAIN, "epsilon": 1.0}
        given |= {"dataset": "small", "key_file": self.key, "another_release": True}
        if "private" not in options:
            given["private_list"] = self.list
        return off.redact(self.frame if frame is None else frame, **(given | options))

    def released(self, name, frame=None, **options):
        """A release, its table and its certificate."""
        release = self.redacted(frame, **options)
        out = self.folder / name
        certificate, _ = release.write(out)
        return release, out, certificate

    def command(self, *more, out="out.csv", given="table.csv"):
        """What the command line is told."""
        path = self.folder / given
        if not path.exists():
            self.frame.write_csv(path)
        words = ["redact", path, "--value", "v", "--order", "t", "--by", "who", "--private-list"]
        words += [self.list, "--model", self.model, "--epsilon", 1, "--dataset", "small"]
        words += ["--key-file", self.key, "--another-release"]
        return [*words, *([] if out is None else ["-o", self.folder / out]), *more]
