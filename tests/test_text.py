"""How far something is, told one way whoever looks."""

from contextlib import contextmanager

import pytest

from offrecord.text import followed, listwise, unwatched


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


@pytest.mark.parametrize("count", [0, 1, 3])
def test_what_goes_through_a_list_is_told(count):
    done = []

    def through(items):
        done.append(f"of {len(items)}")
        for place, item in enumerate(items):
            yield item
            done.append(place + 1)
        done.append("over")

    seen = []
    for item in followed("abc"[:count], "designing", listwise(through)):
        seen.append((item, len(done) - 1))  # as many as have been shown as done before
    assert seen == [("a", 0), ("b", 1), ("c", 2)][:count]
    assert done == [f"of {count}", *range(1, count + 1), "over"]


def test_a_list_that_shows_nothing():
    assert list(followed("abc", "designing", listwise(list))) == ["a", "b", "c"]
