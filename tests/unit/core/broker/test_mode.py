"""The table of transitions between modes, by the laws that it must keep.

Not covered: when each signal is given (test_exchange_state*.py), what a mode grants (test_sharing.py).
"""

import pytest

from rgd.core.broker.mode import TRANSITIONS, Mode, Signal
from rgd.core.policies.model import OnIsolation

FALLBACKS = [Mode(each) for each in OnIsolation]


def after(mode: Mode, *signals: Signal, fallback: Mode = Mode.EQUAL) -> Mode:
    for signal in signals:
        if (transition := TRANSITIONS.get((mode, signal))) is not None:
            mode = transition.mode or fallback
    return mode


def test_the_map_comes_into_use_only_by_answers_or_within_the_hold() -> None:
    into_live = {pair for pair, to in TRANSITIONS.items() if to.mode is Mode.LIVE}
    assert into_live == {
        (Mode.STARTING, Signal.ANSWERED),
        (Mode.REJOINING, Signal.ANSWERED),
        (Mode.HOLDING, Signal.BACK),
    }


@pytest.mark.parametrize("fallback", FALLBACKS)
def test_every_isolated_mode_is_left_for_the_map_as_messages_come_back(fallback: Mode) -> None:
    isolated = after(Mode.LIVE, Signal.SILENT, Signal.HOLD_OVER, fallback=fallback)
    assert isolated is fallback
    assert isolated.is_isolated
    assert after(isolated, Signal.BACK) is Mode.REJOINING
    assert after(isolated, Signal.BACK, Signal.SILENT, fallback=fallback) is fallback
    assert after(isolated, Signal.BACK, Signal.ANSWERED) is Mode.LIVE


@pytest.mark.parametrize("mode", Mode)
def test_a_lost_name_ends_every_mode_and_only_the_name_itself_ends_yielding(mode: Mode) -> None:
    assert after(mode, Signal.NAME_LOST) is Mode.YIELDING
    others = [signal for signal in Signal if signal is not Signal.NAME_BACK]
    assert after(Mode.YIELDING, *others) is Mode.YIELDING
    assert after(Mode.YIELDING, Signal.NAME_BACK) is Mode.REJOINING


def test_states_are_expected_again_whenever_they_may_be_old() -> None:
    for (mode, signal), to in TRANSITIONS.items():
        is_return = signal in (Signal.BACK, Signal.DROPPED, Signal.NAME_BACK)
        assert to.expects_states is is_return, (mode, signal)
        assert (to.mode is Mode.REJOINING) <= to.expects_states
