"""The notebook of examples: it runs from the first cell to the last, and shows what it promises."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "examples" / "rain.ipynb"
#: How what its cells print begins, in order.
PRINTED = (
    "best-local: releases ",
    "owner: releases ",
    "utility (expected share of records released)",
    "it leaks ",
    "order 2, 2 values: ",
    "released ",
    "In at least 99% of the chains ",
    "verified: ",
    "within ε = 1: by the mean chain the release of rain, July to December 2013 moves ",
)


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """What a copy of it shows, run in a folder of its own."""
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_DATA_HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"):
            (folder / name).mkdir()
            patch.setenv(name, str(folder / name))
        book = nbformat.read(NOTEBOOK, as_version=4)
        NotebookClient(book, timeout=300, resources={"metadata": {"path": folder}}).execute()
    assert list((folder / "TMPDIR").glob("*/key")) == []  # it cleans up
    return [one for cell in book.cells if cell.cell_type == "code" for one in cell.outputs]


def test_what_it_prints(outputs):
    printed = [one["text"] for one in outputs if one.get("name") == "stdout"]
    assert len(printed) == len(PRINTED)
    for text, beginning in zip(printed, PRINTED, strict=True):
        assert text.startswith(beginning)
    leaked = re.search(r"it leaks ([\d.]+) where 1.0 is allowed", printed[3])
    assert float(leaked[1]) > 1.0
    share = re.search(r"([\d.]+)%", printed[5])
    assert float(share[1]) > 94.08  # what windows would leave


def test_charts_are_pictures(outputs):
    pages = [one["data"]["text/html"] for one in outputs if "text/html" in one.get("data", {})]
    pictures = [page for page in pages if "data:image/svg+xml;base64," in page]
    assert len(pictures) == 2
    assert not any("<script" in page for page in pictures)


def test_it_is_kept_without_outputs():
    """They would hold times and versions of whoever ran it last."""
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
