"""Bars on standard error: on a terminal alone, and one protocol for all."""

import io
import sys

import pytest

from offrecord.cli import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch):
    """Standard error is a terminal from now on."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    return terminal


@pytest.mark.parametrize("shown", [progress.bar, progress.row_bar])
@pytest.mark.parametrize("count", [3, None])
def test_no_terminal_no_bar(monkeypatch, shown, count):
    monkeypatch.setattr(sys, "stderr", silent := io.StringIO())
    with shown("reading", count) as tell:
        tell(2)
        tell(1)
    with progress.busy("designing"):
        pass
    assert silent.getvalue() == ""


def test_a_bar_of_rows(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with progress.row_bar("reading", 3000) as tell:
        tell(2000)
        tell(1000)
    assert "reading" in terminal.getvalue()
    assert "3,000 of 3,000 rows" in terminal.getvalue()


def test_a_bar_of_rows_that_nobody_has_counted(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with progress.row_bar("reading", None) as tell:
        tell(2000)
    assert "2,000 rows" in terminal.getvalue()


def test_a_bar_shows_after_a_second(monkeypatch):
    terminal = on_terminal(monkeypatch)

    def shown_after(seconds):
        clock = iter([0.0, seconds, seconds, seconds])
        with monkeypatch.context() as patched:
            patched.setattr(progress, "monotonic", lambda: next(clock))
            before = len(terminal.getvalue())
            assert list(progress.designing(["a", "b", "c"])) == ["a", "b", "c"]
        return terminal.getvalue()[before:]

    assert "designing" not in shown_after(0.5)
    assert "designing" in shown_after(1.5)


def test_a_spinner(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with progress.busy("designing"):
        pass
    assert "designing …" in terminal.getvalue()
