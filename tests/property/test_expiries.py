"""The queue of expiries against a plain list: nothing early, nothing lost, nothing twice."""

from hypothesis import given
from hypothesis import strategies as st

from rgd.core.leases.expiries import TICK_NS, Expiries
from rgd.core.units import Nanos

IDS = [str(number) for number in range(12)]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "remove", "pop"]), st.sampled_from(IDS), st.integers(0, 6 * TICK_NS)
    ),
    max_size=60,
)


@given(STEPS)
def test_an_id_is_returned_once_and_soon_after_its_time(steps: list[tuple[str, str, int]]) -> None:
    queue, due, now = Expiries(), dict[str, int](), 0
    ticks = set[int]()
    for what, lease_id, amount in steps:
        if what == "put" and lease_id not in due:
            queue.put(lease_id, Nanos(now + amount))
            due[lease_id] = now + amount
            ticks.add(-(-due[lease_id] // TICK_NS))
        elif what == "remove":
            queue.remove(lease_id)
            due.pop(lease_id, None)
        elif what == "pop":
            now += amount
            while (popped := queue.pop(Nanos(now))) is not None:
                assert due.pop(popped) <= now
            assert all(at > now - TICK_NS for at in due.values())
            ticks = {tick for tick in ticks if tick * TICK_NS > now}
        assert len(queue) == len(due)
        # One entry for each tick that is still to come, however many were removed.
        assert len(queue._ids) <= len(ticks)  # noqa: SLF001 -- what bounds memory
