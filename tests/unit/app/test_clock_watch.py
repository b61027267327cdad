"""Other machines' clocks, as their reports show them."""

from rgd.app.clock_watch import BROKERS_MAX, KEPT, ClockWatch


def test_the_least_late_report_shows_the_clock() -> None:
    watch = ClockWatch()
    for late_ms in (900, 20, 400):
        watch.heard("slow", 10_000 - 5_000, 10_000 + late_ms)
        watch.heard("fast", 10_000 + 7_000, 10_000 + late_ms)
    assert watch.ahead_s() == {"slow": -5.02, "fast": 6.98}


def test_a_clock_that_was_set_is_seen_within_a_few_reports() -> None:
    watch = ClockWatch()
    for _ in range(KEPT):
        watch.heard("b", 60_000, 0)
    assert watch.ahead_s() == {"b": 60.0}
    for _ in range(KEPT):
        watch.heard("b", 100, 110)
    assert watch.ahead_s() == {"b": -0.01}


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
