"""Ctrl-C comes when a library is done with what must not be broken off, and never gets lost."""

import signal
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from structent import StructuredBoostingClassifier
from structent.estimators.engines.xgboost import interrupts_postponed


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


@pytest.mark.requires("xgboost")
def test_one_that_falls_into_what_xgboost_asks_ends_the_fit(monkeypatch):
    from xgboost.data import SingleBatchInternalIter

    give_rows = SingleBatchInternalIter.next
    asked = []

    def interrupted(self, *arguments):
        asked.append("for rows")
        interrupt()
        return give_rows(self, *arguments)

    monkeypatch.setattr(SingleBatchInternalIter, "next", interrupted)
    model = StructuredBoostingClassifier(engine="xgboost")
    with pytest.raises(KeyboardInterrupt):
        model.fit(np.arange(8.0)[:, None], np.arange(8) % 2)
    assert len(asked) > 1  # it went on to the end
