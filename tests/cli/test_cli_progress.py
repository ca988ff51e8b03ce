"""Progress on standard error: bars on a terminal, lines elsewhere, one protocol for all."""

import io
import sys
import time

import pytest

from offrecord.cli import printing
from offrecord.text import followed


class Terminal(io.StringIO):
    def isatty(self):
        return True


def on_terminal(monkeypatch):
    """Standard error is a terminal from now on."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    return terminal


@pytest.mark.parametrize("count", [3, None])
def test_no_terminal_no_bar(monkeypatch, count):
    monkeypatch.setattr(sys, "stderr", silent := io.StringIO())
    with printing.bar("reading", count) as advance:
        advance(2)
        advance(1)
    with printing.bar("designing", None):
        pass
    assert silent.getvalue() == ""


def test_a_file_gets_a_line_every_ten_seconds(monkeypatch):
    assert printing.LINES_EVERY == 10
    monkeypatch.setattr(printing, "LINES_EVERY", 0.02)
    monkeypatch.setattr(sys, "stderr", lines := io.StringIO())
    with printing.bar("reading", 3) as advance:
        advance(2)
        time.sleep(0.1)
    with printing.bar("designing", None):
        time.sleep(0.1)
    said = lines.getvalue()
    assert "offrecord: note: reading: 2 of 3 after 0 s\n" in said
    assert "offrecord: note: designing after 0 s\n" in said
    time.sleep(0.1)
    assert lines.getvalue() == said  # nothing once it is done


def shown_after(seconds, monkeypatch, terminal, count):
    """What a bar of three thousand items writes if the clock stands at so many seconds."""
    clock = iter([0.0, *[seconds] * 9])
    with monkeypatch.context() as patched:
        patched.setattr(printing, "monotonic", lambda: next(clock))
        before = len(terminal.getvalue())
        with printing.bar("reading", count) as advance:
            advance(2000)
            advance(1000)
    return terminal.getvalue()[before:]


def test_a_bar_shows_after_a_second(monkeypatch):
    terminal = on_terminal(monkeypatch)
    assert "reading" not in shown_after(0.5, monkeypatch, terminal, 3000)
    assert "3,000 of 3,000" in shown_after(1.5, monkeypatch, terminal, 3000)
    assert "3,000 of" not in shown_after(1.5, monkeypatch, terminal, None)
    assert "3,000" in shown_after(1.5, monkeypatch, terminal, None)


def test_items_come_one_by_one(monkeypatch):
    on_terminal(monkeypatch)
    assert list(followed(["a", "b"], "designing", printing.bar)) == ["a", "b"]


def test_a_spinner(monkeypatch):
    terminal = on_terminal(monkeypatch)
    with printing.bar("designing", None):
        pass
    assert "designing" in terminal.getvalue()
