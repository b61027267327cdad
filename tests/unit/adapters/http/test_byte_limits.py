"""Budgets of bytes: bodies in work, answers that nobody reads."""

from functools import partial

import pytest

from rgd.adapters.http.byte_limits import FREE_BYTES, BodyBudget, HeldBody, UnreadAnswers
from rgd.adapters.http.errors import Overloaded


def test_a_body_holds_its_bytes_until_it_is_done_with() -> None:
    budget = BodyBudget(100)
    held = HeldBody(budget)
    for count in (60, 70, 50):
        held.grow_to(FREE_BYTES + count)
    assert budget.used == 70
    held.free()
    held.free()
    assert budget.used == 0


def test_what_is_small_passes_while_large_bodies_hold_the_whole_budget() -> None:
    budget = BodyBudget(100)
    HeldBody(budget).grow_to(FREE_BYTES + 100)
    question = HeldBody(budget)
    question.grow_to(20)
    question.grow_to(FREE_BYTES)
    with pytest.raises(Overloaded):
        question.grow_to(FREE_BYTES + 1)
    assert budget.used == 100


def test_an_answer_that_is_too_large_by_itself_waits_alone_or_is_aborted() -> None:
    unread = UnreadAnswers(100)
    aborted: list[str] = []
    for name, count in (("alone", 101), ("small", 1), ("large", 101)):
        unread.add(name, count, partial(aborted.append, name))
    assert aborted == ["alone", "large"]
    assert unread.total == 1
