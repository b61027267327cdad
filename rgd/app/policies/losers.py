"""Whose turn it is where several daemons change one policy over and over.

Law: a daemon whose change lost to ours comes before our next change of that key, however slow it is
beside us, but holds us up for `turn_s` at most. Without turns the daemon nearest to the broker
would always win.
How: losing records are in the topic, so whoever won reads who lost. What daemons that are gone, or
that gave up, are still owed ends by itself. A writer that only pretends to lose, under however many
names, delays each of our changes by `turn_s`, and no more.
"""

import asyncio
from typing import Final

#: Most pairs of a key and a daemon that are waited for; further ones take their chance.
OWED_MAX: Final = 1000


class Losers:
    """The daemons that come before our next change of a key.

    Args:
        turn_s: how long our next change of a key waits for a daemon whose change has just lost to ours.
    """

    def __init__(self, *, turn_s: float) -> None:
        self._turn_s = turn_s
        #: By key and writer, until when we wait for it, in seconds of the event loop; the earliest first.
        self._owed: dict[tuple[str, str], float] = {}
        #: By key, wakes whoever waits; there is one at most, because changes of a key are serialised.
        self._waiting: dict[str, asyncio.Event] = {}

    def note_loss(self, key: str, writer: str) -> None:
        """A record of `writer` lost to one of ours."""
        now_s = asyncio.get_running_loop().time()
        self._owed.pop((key, writer), None)
        while self._owed and self._owed[first := next(iter(self._owed))] <= now_s:
            del self._owed[first]
        if len(self._owed) < OWED_MAX:
            self._owed[key, writer] = now_s + self._turn_s

    def note_win(self, key: str, writer: str) -> None:
        """A record of `writer` counts."""
        if self._owed.pop((key, writer), None) is None:
            return
        event = self._waiting.get(key)
        if event is not None and not self._owed_of(key):
            event.set()

    async def wait(self, key: str) -> None:
        """Return once nobody comes before our next change of `key`."""
        owed = self._owed_of(key)
        if not owed:
            return
        event = self._waiting[key] = asyncio.Event()
        try:
            async with asyncio.timeout_at(max(owed.values())):
                await event.wait()
        except TimeoutError:
            for pair in self._owed_of(key):
                del self._owed[pair]
        finally:
            del self._waiting[key]

    def _owed_of(self, key: str) -> dict[tuple[str, str], float]:
        return {pair: until_s for pair, until_s in self._owed.items() if pair[0] == key}
