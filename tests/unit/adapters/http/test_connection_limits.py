"""Who is let in, who makes room, and what probes keep. Sockets are not covered (tests/integration/http)."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from rgd.adapters.http.connection_limits import Admission, ConnectionLimits, Refused, caller_of


class Client:
    """A connection that leaves as soon as it is closed, as a socket's owner does."""

    def __init__(self, limits: ConnectionLimits, address: str | None = None) -> None:
        self.limits = limits
        self.is_open = True
        self.admission: Admission | None = limits.arrive(address, self.leave)

    def leave(self) -> None:
        assert self.admission is not None
        if self.is_open:
            self.is_open = False
            self.limits.leave(self.admission)

    def ask(self) -> None:
        assert self.admission is not None
        self.limits.busy(self.admission)

    def end(self) -> None:
        assert self.admission is not None
        self.limits.idle(self.admission)


def limits_of(most: int = 3, per_address: int = 100, reserved: int = 2) -> ConnectionLimits:
    return ConnectionLimits(most, per_address, reserved)


def beyond(client: Client) -> Refused | None:
    assert client.admission is not None
    return client.admission.beyond


def test_a_reserve_that_is_busy_too_refuses_and_counts() -> None:
    limits = limits_of()
    for _ in range(5):
        Client(limits).ask()

    assert Client(limits).admission is None
    assert limits.refused[Refused.CONNECTIONS] == 1
    assert limits.open == 5


@pytest.mark.parametrize(
    ("address", "caller"),
    [
        (None, None),
        ("", None),
        ("127.0.0.1", None),
        ("::1", None),
        ("::ffff:127.0.0.1", None),
        ("127.0.0.2", "127.0.0.2"),
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8::1", "2001:db8::/64"),
        ("2001:db8::ffff:1", "2001:db8::/64"),
        ("2001:db8:0:1::1", "2001:db8:0:1::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_whom_an_address_stands_for(address: str | None, caller: str | None) -> None:
    assert caller_of(address) == caller


class AnyOrder(RuleBasedStateMachine):
    """Whatever connections do, the limits hold and the counts are right."""

    MOST, PER_ADDRESS, RESERVED = 4, 2, 2

    def __init__(self) -> None:
        super().__init__()
        self.limits = limits_of(self.MOST, self.PER_ADDRESS, self.RESERVED)
        self.clients: list[Client] = []

    @rule(address=st.sampled_from([None, "a", "b"]))
    def arrive(self, address: str | None) -> None:
        client = Client(self.limits, address)
        if client.admission is not None:
            self.clients.append(client)

    @precondition(lambda self: self.clients)
    @rule(data=st.data(), what=st.sampled_from(["ask", "end", "leave"]))
    def act(self, data: st.DataObject, what: str) -> None:
        client = data.draw(st.sampled_from(self.clients))
        if client.is_open:
            getattr(client, what)()

    @invariant()
    def limits_hold(self) -> None:
        self.clients = [client for client in self.clients if client.is_open]
        ordinary = [client for client in self.clients if beyond(client) is None]
        assert self.limits.open == len(self.clients)
        assert len(ordinary) <= self.MOST
        assert len(self.clients) - len(ordinary) <= self.RESERVED
        for address in ("a", "b"):
            of_address = [
                client
                for client in ordinary
                if client.admission is not None and client.admission.address == address
            ]
            assert len(of_address) <= self.PER_ADDRESS


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=40, stateful_step_count=30)
