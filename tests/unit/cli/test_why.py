"""`rgd why`: the verdict and the words below it, from a whole daemon in this process.

Not covered: what the daemon answers (tests/unit/views/test_explain.py), a daemon that is a process.
Answers that a young daemon cannot give are changed by hand.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rgd.core.buckets.decision import Request
from rgd.core.policies.model import (
    Attachments,
    Group,
    Limit,
    Limits,
    LocalLimit,
    Rates,
    TopicSplit,
    rate_of,
)
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.units import Kind
from rgd.views.why_words import details, remarks, verdict
from tests.support.running_daemon import RunningDaemon, running_daemon
from tests.unit.cli.conftest import Rgd

SNAPSHOT = PolicySnapshot(
    {
        "gold": Group("gold", Limit(Rates(rate_of(4), rate_of(8_000_000)))),
        "stopped": Group("stopped", blocked=True),
        "watched": Group("watched", Limit(Rates(rate_of(1))), shadow=True),
        "split": Group("split", Limit(Rates(rate_of(4))), topic_split=TopicSplit.EVEN),
        "soft": Group("soft", Limit(Rates(rate_of(1000))), soft_ppm=20_000),
        "read": Group("read", Limit(dispatch=Rates(rate_of(8)))),
    },
    Attachments(
        tenants={"tenant": "gold"},
        namespaces={
            "acme/orders": "gold",
            "acme/stopped": "stopped",
            "acme/watched": "watched",
            "acme/split": "split",
            "acme/lost": "nobody",
            "acme/soft": "soft",
            "acme/read": "read",
        },
    ),
    Limits(
        namespace_subscriptions={
            "acme/read": LocalLimit(dispatch=Rates(rate_of(0.1), rate_of(0.1)))
        }
    ),
)
#: At 4 a second it takes ten seconds until it is paid: longer than a test.
DEBT = Request(messages=39, namespace="acme/orders", topic="persistent://acme/orders/eu")


@pytest.fixture
def running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningDaemon]:
    with running_daemon(tmp_path, SNAPSHOT) as daemon:
        monkeypatch.setenv("RGD_URL", daemon.url)
        yield daemon


def told(rgd: Rgd, *arguments: str) -> list[str]:
    """What the command says, a line each."""
    outcome = rgd("why", *arguments)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.out.splitlines()


def test_the_first_line_says_which_limit_cuts_and_how_far_it_is_in_debt(
    rgd: Rgd, running: RunningDaemon
) -> None:
    running.ask(DEBT, DEBT, DEBT._replace(attempt=2))
    lines = told(rgd, "acme/orders/eu")
    assert lines[0].startswith(
        "acme/orders/eu publish is limited by group gold (messages): "
        "4/s cluster-wide, share here 4/s, in debt by "
    )
    assert lines[1].startswith(
        "group gold (messages) refused 2 requests (1 of them retries), 78 messages on broker-1"
    )
    assert "one message more is granted in" in lines[2]


def test_the_table_has_a_line_for_each_limited_dimension(rgd: Rgd, running: RunningDaemon) -> None:
    running.ask(DEBT, DEBT)
    lines = told(rgd, "acme/orders")
    head = next(place for place, line in enumerate(lines) if line.startswith("LIMIT"))
    messages, size = (line.split() for line in lines[head + 1 : head + 3])
    assert messages[:5] == ["gold", "namespace:acme/orders", "messages", "4", "4"]
    assert messages[-1] == "39"
    assert size[:5] == ["gold", "namespace:acme/orders", "bytes", "8MB", "8MB"]


def test_a_soft_limit_is_named_with_its_rate_and_what_went_beyond_it(
    rgd: Rgd, running: RunningDaemon
) -> None:
    fresh = told(rgd, "acme/soft")
    assert "group soft has a soft limit at 0.02 of its share:" in fresh[-2]
    assert "not asked for here yet" in fresh[-1]
    # At 20 a second it takes ten seconds until it is below it again.
    running.ask(*(Request(messages=messages, namespace="acme/soft") for messages in (5, 200)))
    lines = told(rgd, "acme/soft")
    assert lines[0].endswith("; it is beyond the soft limit of group soft")
    assert lines[-1] == (
        "group soft has a soft limit at 0.02 of its share, 20/s (messages) here: callers beyond it are "
        "told and granted, 200 messages since the start"
    )


def test_a_name_without_limits_is_told_what_decides(rgd: Rgd, running: RunningDaemon) -> None:
    verdict, _, remark = told(rgd, "other/free")
    assert verdict.startswith("no limit applies to other/free publish: ")
    assert remark.startswith("it passes, unless http.ungoverned is deny; ")


def test_a_blocked_group_is_the_verdict(rgd: Rgd, running: RunningDaemon) -> None:
    running.ask(Request(messages=1, namespace="acme/stopped"))
    [line, *others] = told(rgd, "acme/stopped")
    assert line == "acme/stopped publish is blocked by group stopped: nothing passes"
    assert not any("one message more" in other for other in others)


@pytest.mark.parametrize("of", ["size", "time"])
def test_a_backlog_that_blocks_under_a_quota_that_was_removed(
    running: RunningDaemon, of: str
) -> None:
    view = explained(running)
    view["limited_by"] = {"level": "backlog", "group": None, "dimension": "messages"}
    blocked = {"quota_type": of, "held": False, "retry_after_ms": 9000}
    view["backlog"] = {"blocked": blocked, "limit_size": -1, "limit_time": -1, "size_bytes": 7}
    assert verdict(view).endswith(
        "is refused: its backlog exceeded a quota that was removed; the next check is in 9 s"
    )


def test_a_shadow_cuts_nothing_and_is_reported(rgd: Rgd, running: RunningDaemon) -> None:
    running.ask(*[Request(messages=2, namespace="acme/watched")] * 5)
    lines = told(rgd, "acme/watched")
    assert "is not limited now" in lines[0]
    assert any(line.startswith("group watched is a shadow") for line in lines)


def test_a_group_that_is_missing_is_reported(rgd: Rgd, running: RunningDaemon) -> None:
    lines = told(rgd, "acme/lost")
    assert lines[0].startswith("no limit applies to acme/lost publish: ")
    missing = (
        "namespace acme/lost is attached to group nobody, which does not exist: it limits nothing"
    )
    assert missing in lines


def test_a_divided_share_is_reported(rgd: Rgd, running: RunningDaemon) -> None:
    eu = DEBT._replace(namespace="acme/split", topic="persistent://acme/split/eu")
    running.ask(eu, eu)
    lines = told(rgd, "acme/split/eu")
    assert "this topic's part 4/s" in lines[0]
    assert any("divides its share over topics (even)" in line for line in lines)


def test_json_is_what_the_daemon_answers(rgd: Rgd, running: RunningDaemon) -> None:
    running.ask(DEBT, DEBT)
    [line] = told(rgd, "persistent://acme/orders/eu", "--subscription", "s", "--json")
    view = json.loads(line)
    assert (view["topic"], view["subscription"]) == ("persistent://acme/orders/eu", "s")
    assert view["limited_by"]["group"] == "gold"


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("acme",),
        ("acme//eu",),
        ("persistent://acme/orders",),
        ("acme/orders", "--subscription", "s"),
        ("acme/orders/eu", "--subscription", ""),
        ("acme/orders", "--kind", "both"),
    ],
)
def test_asking_wrongly_is_2(rgd: Rgd, arguments: tuple[str, ...]) -> None:
    outcome = rgd("why", *arguments)
    assert (outcome.code, outcome.out) == (2, "")


# Words for what a young daemon alone does not show.


def explained(running: RunningDaemon, name: Request = DEBT) -> dict[str, Any]:
    """An answer of the daemon, to be changed."""
    view: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(running.explain(name)))
    return view


def test_a_limit_of_the_brokers_own_says_who_set_it(running: RunningDaemon) -> None:
    running.ask(DEBT, DEBT)
    view = explained(running)
    view["levels"][0] |= {"level": "topic", "group": None}
    view["levels"][0]["set_at"] = [{"scope": "namespace", "name": "acme/orders"}]
    view["levels"][0]["messages"] |= {"tokens": 3.0}
    view["limited_by"] = {"level": "topic", "group": None, "dimension": "messages"}
    assert verdict(view) == (
        "acme/orders/eu publish is limited by the topic's limit (messages): "
        "4/s each broker, 3 left now, set for namespace acme/orders"
    )


@pytest.mark.slow
@pytest.mark.parametrize("state", ["starting", "holding", "equal", "hold", "open", "rejoining"])
def test_shares_that_are_not_live_are_reported(running: RunningDaemon, state: str) -> None:
    view = explained(running)
    assert not any(line.startswith("shares are") for line in remarks(view))
    view["levels"][0]["state"] = state
    assert any(line.startswith(f"shares are {state}: ") for line in remarks(view))


def test_bytes_are_reported_where_bytes_were_cut(running: RunningDaemon) -> None:
    size = Request(messages=0, bytes=70_000_000, namespace="acme/orders")
    running.ask(size, size)
    view = explained(running, size)
    assert verdict(view).startswith(
        "acme/orders publish is limited by group gold (bytes): 8MB/s cluster-wide, share here 8MB/s, in debt by"
    )
    assert any(" refused 1 request, 0 messages, 70MB on " in line for line in details(view))


def test_leases_are_reported(running: RunningDaemon) -> None:
    view = explained(running)
    leases = {"leases": 2, "wants": {"messages": 30.0, "bytes": 0.0}}
    view["levels"][0]["leases"] = leases | {"held_messages": 12, "held_bytes": 0}
    assert "group gold has 2 leases that want 30/s (messages, 12 held)" in details(view)


def test_every_level_that_lowered_a_subscriptions_reads_is_named(
    rgd: Rgd, running: RunningDaemon
) -> None:
    topic = "persistent://acme/read/eu"
    read = Request(Kind.DISPATCH, 100, 400, namespace="acme/read", topic=topic)
    words = ("acme/read/eu", "--kind", "dispatch", "--subscription", "audit")
    assert not [line for line in told(rgd, *words) if "its reads were lowered" in line]
    running.ask(read._replace(subscription="audit", partial=True))
    [line] = [line for line in told(rgd, *words) if "its reads were lowered" in line]
    # At a tenth a second a full bucket has one of each.
    assert line.startswith(
        "its reads were lowered by resource_group 1 time (messages), "
        "subscription 1 time (messages), subscription 1 time (bytes): "
        "99 messages and 399 bytes not read in time, "
    )
    assert line.endswith(" s of waiting")
