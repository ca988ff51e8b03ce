"""The protocol of progress bars."""

from contextlib import contextmanager

from offrecord.text import followed, unwatched


def test_items_are_told_once_they_are_done_with():
    told = []

    @contextmanager
    def progress(what, count):
        told.append((what, count))
        yield told.append
        told.append("over")

    for item in followed(["a", "b"], "designing", progress):
        told.append(item)
    assert told == [("designing", 2), "a", 1, "b", 1, "over"]


def test_nobody_needs_to_look():
    assert list(followed(["a", "b"], "designing", unwatched)) == ["a", "b"]
