"""Ctrl-C that falls into what a C library calls still ends the command."""

import ctypes
import signal
import sys
import time

import pytest

from structent.cli.interrupts import no_interrupt_lost

LONG = 60  # seconds: nothing here waits so long, unless an interrupt is lost


def called_by_c(function):
    """Call a function where Python can but print what it raises."""
    ctypes.CFUNCTYPE(None)(function)()


def lose_an_interrupt():
    called_by_c(lambda: signal.raise_signal(signal.SIGINT))


def fail_for_it():
    lose_an_interrupt()
    raise RuntimeError("half of the rows are missing")


def sleep_on(ended):
    lose_an_interrupt()
    time.sleep(LONG)
    ended.append("slept to the end")


def lose_the_second_as_well(ended):
    def wait():
        time.sleep(LONG)
        ended.append("slept to the end, in what C calls")

    lose_an_interrupt()
    called_by_c(wait)
    time.sleep(LONG)
    ended.append("slept to the end")


def test_the_library_fails_for_it():
    with pytest.raises(KeyboardInterrupt) as caught, no_interrupt_lost():
        fail_for_it()
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_the_library_comes_to_its_end():
    with pytest.raises(KeyboardInterrupt), no_interrupt_lost():
        lose_an_interrupt()


@pytest.mark.parametrize("library", [sleep_on, lose_the_second_as_well])
def test_the_library_goes_on_for_long(library):
    ended = []
    with pytest.raises(KeyboardInterrupt), no_interrupt_lost():
        library(ended)
    assert not ended


def test_nothing_comes_after():
    with pytest.raises(KeyboardInterrupt), no_interrupt_lost():
        lose_an_interrupt()
    time.sleep(0.1)  # a late interrupt would end the test run


def test_without_an_interrupt_nothing_changes():
    before = sys.unraisablehook
    with pytest.raises(RuntimeError, match="its own"), no_interrupt_lost():
        raise RuntimeError("its own")
    assert sys.unraisablehook is before


def test_other_exceptions_that_python_ignores_are_told_as_ever(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_type))
    with no_interrupt_lost():
        called_by_c(lambda: 1 / 0)
    assert told == [ZeroDivisionError]
