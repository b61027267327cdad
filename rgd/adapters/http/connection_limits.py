"""How many connections there may be, which of them make room, and what probes keep in reserve.

Laws:
- At most `connections_max` ordinary connections. A new one beyond that takes the place of the one
  that has waited longest without a request under way, first of those that never asked anything: idle
  sockets shut nobody out. Where all are busy, and beyond `per_address_max` of one address, a connection
  comes into the reserve.
- The reserve has `PROBES_RESERVED` connections, which may ask for probes only; what a connection is
  for is known after its first request and not before. In a full reserve the one that has waited
  longest makes room. So a probe that asks at once is answered, however many sockets stand idle.
- Whoever asks for anything else there, and whoever finds the reserve busy too, is refused and counted.

It knows no HTTP library and no socket: whoever owns the connections tells what becomes of them.
"""

import ipaddress
from collections import Counter, OrderedDict
from collections.abc import Callable
from enum import StrEnum
from typing import Final

#: Connections beyond the ordinary ones, for probes.
PROBES_RESERVED: Final = 32

#: An IPv6 caller has a network of this length, in bits: it may take any address in it.
IPV6_CALLER_BITS: Final = 64

#: Where every caller of this machine comes from: limited together by `connections_max` alone.
_THIS_MACHINE: Final = frozenset({"127.0.0.1", "::1"})


class Refused(StrEnum):
    """Which limit a connection was beyond."""

    CONNECTIONS = "connections_max"
    ADDRESS = "connections_per_address_max"


class Closed(StrEnum):
    """Why a connection was closed before its peer wanted it."""

    #: It made room for another one.
    EVICTED = "evicted"
    #: A request head did not arrive in time.
    SLOW_REQUEST = "slow_request"
    #: An answer was not read in time.
    SLOW_READER = "slow_reader"
    #: Unread answers were over the limit for all connections together.
    UNREAD_LIMIT = "unread_limit"


class Admission:
    """One connection that was let in."""

    __slots__ = ("address", "authority", "beyond", "close", "has_asked")

    def __init__(
        self, address: str | None, beyond: Refused | None, close: Callable[[], None]
    ) -> None:
        self.address = address
        #: The limit that it is beyond: it may ask for probes only. None: an ordinary one.
        self.beyond = beyond
        #: Closes it to make room; the owner calls `leave` once that is done.
        self.close = close
        self.has_asked = False
        #: By which the client's certificate was accepted (`tls`); None: it showed none.
        self.authority: bytes | None = None


class ConnectionLimits:
    """Counts connections and decides who may come in."""

    def __init__(
        self, connections_max: int, per_address_max: int, reserved: int = PROBES_RESERVED
    ) -> None:
        self._ordinary_max = connections_max
        self._per_address_max = per_address_max
        self._reserved = reserved
        self._ordinary = 0
        self._in_reserve = 0
        self._of_address: Counter[str] = Counter()
        #: Without a request under way, longest first: that never asked, that did, in the reserve.
        self._silent: OrderedDict[Admission, None] = OrderedDict()
        self._idle: OrderedDict[Admission, None] = OrderedDict()
        self._probing: OrderedDict[Admission, None] = OrderedDict()
        #: Connections refused so far, by the limit that they were beyond.
        self.refused: Counter[Refused] = Counter(dict.fromkeys(Refused, 0))
        #: Connections closed early so far, by the reason.
        self.closed: Counter[Closed] = Counter(dict.fromkeys(Closed, 0))

    @property
    def open(self) -> int:
        """Connections that are open, the reserve's too."""
        return self._ordinary + self._in_reserve

    def arrive(self, address: str | None, close: Callable[[], None]) -> Admission | None:
        """Let a connection in, or refuse and count it (None).

        Args:
            address: the caller's, as `caller_of` has it; None where callers cannot be told apart.
            close: closes the connection at once; called later, where it has to make room.
        """
        beyond = self._limit_reached(address)
        if beyond is None:
            self._ordinary += 1
            if address is not None:
                self._of_address[address] += 1
        elif self._has_room_for_probes():
            self._in_reserve += 1
        else:
            self.refused[beyond] += 1
            return None
        admission = Admission(address, beyond, close)
        self.idle(admission)
        return admission

    def busy(self, admission: Admission) -> None:
        """A request began: the connection cannot make room."""
        self._waiting(admission).pop(admission, None)
        admission.has_asked = True

    def idle(self, admission: Admission) -> None:
        """No request is under way: the connection may be closed to make room."""
        self._waiting(admission)[admission] = None

    def asked(self, admission: Admission) -> None:
        """A request came and was answered at once: of those that asked it has waited least."""
        if not admission.has_asked or admission.beyond is not None:
            self.busy(admission)
        waiting = self._waiting(admission)
        waiting[admission] = None
        waiting.move_to_end(admission)

    def leave(self, admission: Admission) -> None:
        """The connection is closed."""
        self._waiting(admission).pop(admission, None)
        if admission.beyond is not None:
            self._in_reserve -= 1
            return
        self._ordinary -= 1
        address = admission.address
        if address is not None:
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]

    def _limit_reached(self, address: str | None) -> Refused | None:
        if address is not None and self._of_address[address] >= self._per_address_max:
            return Refused.ADDRESS
        if self._ordinary < self._ordinary_max or self._evict(self._silent or self._idle):
            return None
        return Refused.CONNECTIONS

    def _has_room_for_probes(self) -> bool:
        if self._in_reserve < self._reserved:
            return True
        longest = next(iter(self._probing), None)
        if longest is None:
            return False
        if longest.beyond is not None:
            self.refused[longest.beyond] += 1
        return self._evict(self._probing)

    def _evict(self, waiting: OrderedDict[Admission, None]) -> bool:
        """Close the one that waits longest; it leaves at once, so that the next finds another."""
        if not waiting:
            return False
        longest, _ = waiting.popitem(last=False)
        self.closed[Closed.EVICTED] += 1
        longest.close()
        return True

    def _waiting(self, admission: Admission) -> OrderedDict[Admission, None]:
        if admission.beyond is not None:
            return self._probing
        return self._idle if admission.has_asked else self._silent


def caller_of(address: str | None) -> str | None:
    """Whom an address stands for, None where that may be anybody on this machine.

    Args:
        address: of the peer, without a port; None for a unix socket, whose file says who may connect.
    """
    if not address or address in _THIS_MACHINE:
        return None
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return caller_of(str(found.ipv4_mapped))
    network = ipaddress.ip_network((found, IPV6_CALLER_BITS), strict=False)
    return str(network)
