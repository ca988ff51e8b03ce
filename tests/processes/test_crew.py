"""A crew: what is found is what would be found here, whoever does it, whatever becomes of them."""

import math
import operator
import os
import signal
import subprocess
import sys
import time
from threading import Thread

import pytest

from offrecord.processes import crew, pipes

SCRIPT = """
import os, sys, time
from offrecord.processes import crew
crew._PATIENCE = 0.0
crew.hire(2)
works = crew.each([(time.sleep, (0.5,)), (time.sleep, (60.0,)), (time.sleep, (60.0,))])
next(works)
print(crew._crew[0].process.pid, flush=True)
next(works)
"""


@pytest.fixture
def hired(monkeypatch):
    """Two helpers, who come at once."""
    monkeypatch.setattr(crew, "_PATIENCE", 0.0)
    crew.hire(3)
    helpers = list(crew._crew)
    yield helpers
    crew.dismiss()
    assert all(one.process is None or one.process.poll() is not None for one in helpers)


def come(helpers):
    """Wait until somebody else has done something, and say who."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        others = set(crew.each([(os.getpid, ())] * 40)) - {os.getpid()}
        if others:
            return others
        time.sleep(0.05)
    return pytest.fail("nobody has come")


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_nobody_is_started_where_nobody_was_hired(monkeypatch):
    monkeypatch.setattr(pipes, "started", None)
    monkeypatch.setattr(crew, "_PATIENCE", 0.0)
    assert list(crew.each([(math.sqrt, (number,)) for number in range(9)])) == [
        math.sqrt(number) for number in range(9)
    ]
    assert list(crew.each([])) == []


def test_one_work_is_done_here(hired):
    assert list(crew.each([(os.getpid, ())])) == [os.getpid()]
    assert not any(one.is_there for one in hired)


def test_short_work_is_done_before_anybody_is_called(monkeypatch, hired):
    monkeypatch.setattr(crew, "_PATIENCE", 60.0)
    assert set(crew.each([(os.getpid, ())] * 100)) == {os.getpid()}
    assert not any(one.is_there for one in hired)


def test_work_is_shared_and_comes_in_its_order(hired):
    assert come(hired) <= {one.process.pid for one in hired if one.is_there}
    works = [(operator.add, (number, 0.5)) for number in range(300)]
    assert list(crew.each(works)) == [number + 0.5 for number in range(300)]


def test_what_work_raises_is_raised_in_its_turn(hired):
    come(hired)
    works = [(time.sleep, (0.3,)), (operator.truediv, (1, 0)), (math.sqrt, (-1,))]
    found = crew.each(works)
    assert next(found) is None
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_what_cannot_be_sent_is_done_here(hired):
    come(hired)
    works = [((lambda number: 2 * number), (number,)) for number in range(20)]
    assert list(crew.each(works)) == list(range(0, 40, 2))
    assert all(not one.has_left for one in hired)  # nothing is wrong with them


def test_works_of_helpers_that_die_are_done_here(hired):
    come(hired)
    works = crew.each([(time.sleep, (0.2,))] * 6)
    next(works)
    for one in hired:
        if one.is_there:
            os.kill(one.process.pid, signal.SIGKILL)
    assert list(works) == [None] * 5
    assert list(crew.each([(math.sqrt, (4,))] * 5)) == [2.0] * 5


def test_helpers_that_cannot_be_started(monkeypatch, hired):
    def refuse(module):
        raise OSError("no more processes")

    monkeypatch.setattr(pipes, "started", refuse)
    assert list(crew.each([(time.sleep, (0.05,))] * 5)) == [None] * 5
    assert any(one.has_left for one in hired)


def test_helpers_leave_what_nobody_waits_for(hired):
    come(hired)
    works = crew.each([(time.sleep, (0.2,)), (time.sleep, (60.0,)), (time.sleep, (60.0,))])
    assert next(works) is None
    started = time.monotonic()
    works.close()
    assert time.monotonic() - started < 30
    assert any(one.has_left for one in hired)
    assert crew.size() == 3  # others have taken their places
    come(hired)


def test_no_helper_computes_by_other_sources(monkeypatch, hired):
    """One that another installation was started for is not asked anything."""
    monkeypatch.setattr(pipes, "__file__", "elsewhere")
    assert set(crew.each([(time.sleep, (0.1,))] * 20)) == {None}
    assert any(one.has_left for one in hired)
    assert {one.process.poll() is None for one in hired if one.is_there} == {False}


def test_helpers_that_nobody_can_be_started_for(monkeypatch, hired):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(crew.Thread, "start", refuse)
    assert list(crew.each([(math.sqrt, (4,))] * 5)) == [2.0] * 5


def test_shares_within_shares(hired):
    """Whoever does a work may share parts of it while helpers are busy."""
    come(hired)

    def nested():
        return sum(crew.each([(math.sqrt, (number,)) for number in (1, 4, 9)]))

    assert list(crew.each([(nested, ()), (time.sleep, (0.3,)), (nested, ())])) == [6.0, None, 6.0]


def test_whoever_was_prepared_is_asked_and_nobody_else_is(hired):
    crew.prepare((os.getcwd, ()))
    helper = hired[0]
    assert crew.asked((os.getpid, ())) == helper.process.pid  # waited for while it was on its way
    assert crew.asked((math.sqrt, (9.0,))) == 3.0
    assert crew.asked((time.sleep, (0.0,))) is None  # of another module: here
    assert not hired[1].is_there
    # and it takes its part in all other work
    assert come(hired) <= {one.process.pid for one in hired if one.is_there}


def test_what_nobody_was_prepared_for_is_done_here(hired):
    assert crew.asked((os.getpid, ())) == os.getpid()
    assert not any(one.is_there for one in hired)
    crew.dismiss()
    crew.prepare((os.getpid, ()))  # nobody is there to come
    assert crew.asked((os.getpid, ())) == os.getpid()


@pytest.mark.parametrize("how", ["dies", "raises", "cannot be started", "is at something else"])
def test_what_one_who_was_prepared_cannot_do_is_done_here(hired, how, monkeypatch):
    if how == "cannot be started":
        monkeypatch.setattr(pipes, "started", None)
    crew.prepare((os.getcwd, ()))
    if how == "dies":
        assert crew.asked((os.getpid, ())) == hired[0].process.pid
        os.kill(hired[0].process.pid, signal.SIGKILL)
    if how == "is at something else":
        monkeypatch.setattr(crew, "_LONG", 0.1)
        Thread(target=hired[0].prepare, args=((time.sleep, (60.0,)),), daemon=True).start()
        time.sleep(1.0)
    if how == "raises":
        with pytest.raises(FileNotFoundError):
            crew.asked((os.listdir, ("nowhere",)))
    else:
        assert crew.asked((os.getpid, ())) == os.getpid()


def test_one_who_does_not_answer_is_sent_away(hired, monkeypatch):
    monkeypatch.setattr(crew, "_ANSWERED", 0.3)
    crew.prepare((time.time, ()))
    assert crew.asked((time.monotonic, ())) > 0.0
    started = time.monotonic()
    assert crew.asked((time.strftime, ("%Y",))) == time.strftime("%Y")
    helper = crew._crew[0]
    assert helper.asked((time.sleep, (60.0,))) is None
    assert time.monotonic() - started < 30.0
    assert helper.has_left
    assert crew.asked((time.sleep, (0.0,))) is None  # here


def test_an_answer_that_was_not_waited_for_is_no_answer_to_the_next_question(hired, monkeypatch):
    crew.prepare((time.time, ()))
    assert crew.asked((time.monotonic, ())) > 0.0

    def interrupted(*asked):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(pipes, "_read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            crew.asked((time.strftime, ("first",)))
    assert crew.asked((time.strftime, ("second",))) == "second"


def test_one_who_was_prepared_leaves_at_once(hired):
    """Whatever it is at: a command that fails does not wait for it."""
    crew.prepare((os.getcwd, ()))
    started = time.monotonic()
    crew.dismiss()
    assert time.monotonic() - started < 5.0
    assert all(one.process is None or one.process.poll() is not None for one in hired)


@pytest.mark.parametrize("said", ["0", "-1", "two", "1.5"])
def test_a_number_of_processes_that_is_none(run, monkeypatch, said):
    monkeypatch.setenv("OFFRECORD_PROCESSES", said)
    assert run("key", "show-id") == (
        2,
        "",
        f"offrecord: OFFRECORD_PROCESSES is '{said}'; a whole number from 1 on is needed\n",
    )


def test_as_many_as_are_asked_for(monkeypatch):
    for said, size in (("1", 1), ("3", 3), ("1000", crew._MOST + 1)):
        monkeypatch.setenv("OFFRECORD_PROCESSES", said)
        crew.hire()
        assert crew.size() == size
    monkeypatch.delenv("OFFRECORD_PROCESSES")
    crew.hire()
    assert 1 <= crew.size() <= (os.cpu_count() or 1)
    crew.dismiss()
    assert crew.size() == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_helpers_end_with_whoever_they_work_for(end):
    command = [sys.executable, "-c", SCRIPT]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        helper = int(process.stdout.readline())
        assert is_running(helper)
        process.send_signal(end)
        process.wait(timeout=30)
    until = time.monotonic() + 30
    while is_running(helper) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_running(helper)
