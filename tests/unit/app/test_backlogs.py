"""Who waits for a check, and until when. What a check finds is tested in tests/unit/core/backlog."""

import asyncio
from pathlib import Path

import pytest

from rgd.core.backlog.model import (
    EVENT_TOPICS_MAX,
    Ledger,
    Position,
    Source,
    SubscriptionBacklog,
    TopicBacklog,
)
from rgd.core.bounds import BOUNDS
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.errors import Unavailable
from tests.support.running_daemon import memory_daemon

#: So many slices that no check ends while a daemon says goodbye.
TOPICS = 200 * BOUNDS.backlog.slice_topics


def reports() -> list[TopicBacklog]:
    sub = SubscriptionBacklog("billing", Position(1, 0))
    return [
        TopicBacklog(
            f"persistent://acme/orders/{at}", (Ledger(1, 10, 100),), (sub,), Source.PUSHED, 0
        )
        for at in range(TOPICS)
    ]


async def test_nobody_waits_for_a_check_of_a_daemon_that_stops(tmp_path: Path) -> None:
    daemon, until = memory_daemon(tmp_path, PolicySnapshot()), asyncio.Event()
    told = reports()
    for begin in range(0, TOPICS, EVENT_TOPICS_MAX):
        daemon.backlogs.report(told[begin : begin + EVENT_TOPICS_MAX])
    waiting = asyncio.create_task(daemon.backlogs.check())
    await asyncio.sleep(0)
    until.set()
    await daemon.run(until, on_up=lambda: None)
    # A fault is a failure, not a test that hangs.
    async with asyncio.timeout(60):
        with pytest.raises(Unavailable, match="stopping"):
            await waiting
        with pytest.raises(Unavailable, match="stopping"):
            await daemon.backlogs.check()
    await daemon.close()
