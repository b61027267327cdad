"""Other machines' clocks, as their reports show them."""

from rgd.app.clock_watch import BROKERS_MAX, ClockWatch


def test_a_message_without_a_publish_time_says_nothing() -> None:
    watch = ClockWatch()
    watch.heard("b", 0, 10)
    assert watch.ahead_s() == {}


def test_made_up_names_push_out_those_that_were_received_longest_ago() -> None:
    watch = ClockWatch()
    for number in range(BROKERS_MAX + 50):
        watch.heard(f"b{number}", 1, 1)
        watch.heard("b0", 1, 1)
    assert len(watch.ahead_s()) == BROKERS_MAX
    assert "b0" in watch.ahead_s()
    watch.forget(frozenset({"b0", "never heard"}))
    assert "b0" not in watch.ahead_s()
