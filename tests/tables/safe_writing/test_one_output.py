"""Runs that have the same output, at once: it is one of theirs, with its own certificate."""

import hashlib
import json
from threading import Thread

import pytest

from offrecord.errors import InputError
from offrecord.tables import writing


def written(folder, content, *, force):
    """A release of these bytes."""
    path = folder / "out.csv"
    out = writing.Output(path, "csv", folder / "out.csv.certificate.json", force)
    out.write(
        lambda file, kind, packing: file.write_bytes(content),
        lambda digest: json.dumps({"sha256": digest}).encode(),
    )


@pytest.mark.parametrize("force", [True, False])
def test_two_runs_with_one_output(tmp_path, monkeypatch, force):
    """The second one comes while the first has named its certificate, and not its table yet."""
    refused, others, sync = [], [], writing.sync_folder

    def second():
        try:
            written(tmp_path, b"the second", force=force)
        except InputError as error:
            refused.append(str(error))

    def between(folder):
        if not others:
            others.append(Thread(target=second))
            others[0].start()
            others[0].join(0.5)
        sync(folder)

    monkeypatch.setattr(writing, "sync_folder", between)
    written(tmp_path, b"the first", force=force)
    others[0].join()
    content = (tmp_path / "out.csv").read_bytes()
    certificate = json.loads((tmp_path / "out.csv.certificate.json").read_bytes())
    assert certificate["sha256"] == hashlib.sha256(content).hexdigest()
    assert content == (b"the second" if force else b"the first")
    assert len(refused) == (0 if force else 1)
    assert len(list(tmp_path.iterdir())) == 2
