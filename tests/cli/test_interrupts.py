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


def fail_because_of_it():
    """As a function compiled by Numba does, if it is called at the wrong moment."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt as interrupt:
        raise SystemError("returned a result with an exception set") from interrupt


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


@pytest.mark.parametrize(
    ("library", "error"), [(fail_for_it, RuntimeError), (fail_because_of_it, SystemError)]
)
def test_the_library_fails_for_it(library, error):
    with pytest.raises(KeyboardInterrupt) as caught, no_interrupt_lost():
        library()
    assert isinstance(caught.value.__cause__, error)


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
    before = sys.unraisablehook, signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError, match="its own"), no_interrupt_lost():
        raise RuntimeError("its own")
    assert (sys.unraisablehook, signal.getsignal(signal.SIGINT)) == before


def test_who_ignores_them_goes_on_to():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with no_interrupt_lost():
            signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_exceptions_that_python_ignores_are_told_as_ever(monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: told.append(found.exc_type))
    with no_interrupt_lost():
        called_by_c(lambda: 1 / 0)
    assert told == [ZeroDivisionError]
