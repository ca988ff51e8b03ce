"""The notebook of examples: it runs from the first cell to the last, and shows what it promises."""

import json
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).parents[1] / "examples" / "rain.ipynb"
#: How the representations in it begin, in order.
SHOWN = (
    "best-local: releases ",
    "owner: releases ",
    "utility (expected share of records released)",
    "order 2, 2 values: ",
    "&#x27;rain, July to December 2013&#x27;: ",
    "certificate of &#x27;rain, July to December 2013&#x27;",
    "verified: ",
    "within ε = 1: by the mean chain the release of rain, July to December 2013 moves ",
)


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    """A copy of it, run in a folder of its own."""
    folder = tmp_path_factory.mktemp("notebook")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_DATA_HOME", "IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "TMPDIR"):
            (folder / name).mkdir()
            patch.setenv(name, str(folder / name))
        book = nbformat.read(NOTEBOOK, as_version=4)
        NotebookClient(book, timeout=300, resources={"metadata": {"path": folder}}).execute()
    assert list((folder / "TMPDIR").glob("*/key")) == []  # it cleans up
    return book


def outputs(book):
    return [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]


def test_everything_in_it_is_shown_as_a_page(executed):
    pages = [
        output["data"]["text/html"]
        for output in outputs(executed)
        if output.output_type == "execute_result" and "<b>" in output["data"].get("text/html", "")
    ]
    pages = [page for page in pages if page.startswith("<p><b>")]  # frames show themselves
    assert len(pages) == len(SHOWN)
    for page, beginning in zip(pages, SHOWN, strict=True):
        assert page.startswith(f"<p><b>{beginning}")
        assert len(page) < 100_000
        assert "<script" not in page
    share = re.search(r": ([\d.]+)% of 4,372 records released", pages[4])
    assert float(share[1]) > 94.08  # what windows would leave
    assert pages[2].count("data:image/svg+xml;base64,") == 1
    assert pages[-1].count("data:image/svg+xml;base64,") == 1


def test_it_says_what_a_window_of_ones_own_leaks(executed):
    said = "".join(one["text"] for one in outputs(executed) if one.output_type == "stream")
    leaked = re.search(r"it leaks ([\d.]+) where 1.0 is allowed", said)
    assert leaked is not None
    assert float(leaked[1]) > 1.0


def test_it_is_kept_without_outputs():
    """They would hold times and versions of whoever ran it last."""
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == []
            assert cell["execution_count"] is None
