"""Ctrl-C that has to wait comes at the end, and only there."""

import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from structent._interrupts import interrupts_postponed


def interrupt(*then):
    signal.raise_signal(signal.SIGINT)
    for step in then:
        step()


def fail():
    raise RuntimeError("for another reason")


def test_it_comes_at_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts_postponed():
        interrupt(lambda: done.append("the rest"))
    assert done == ["the rest"]


def test_it_comes_after_a_failure_as_well():
    with pytest.raises(KeyboardInterrupt) as caught, interrupts_postponed():
        interrupt(fail)
    assert isinstance(caught.value.__context__, RuntimeError)


def test_without_one_nothing_changes():
    before = signal.getsignal(signal.SIGINT)
    with interrupts_postponed():
        assert signal.getsignal(signal.SIGINT) is not before
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(RuntimeError, match="for another reason"), interrupts_postponed():
        fail()
    assert signal.getsignal(signal.SIGINT) is before


def test_who_ignores_them_goes_on_to():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with interrupts_postponed():
            interrupt()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_have_none_to_postpone():
    def block():
        with interrupts_postponed():
            return "done"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(block).result() == "done"
