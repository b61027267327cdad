"""Whose turn it is where several daemons change one policy over and over.

Law: a daemon whose change lost to ours comes before our next change of that key, however slow it is
beside us, but holds us up for `TURN_S` at most. Without turns the daemon nearest to the broker
would always win.
How: losing records are in the topic, so whoever won reads who lost. What daemons that are gone, or
that gave up, are still owed ends by itself.
"""

import asyncio
from typing import Final

#: How long our next change of a key waits for a daemon whose change has just lost to ours.
TURN_S: Final = 1.0
#: Most keys, and most daemons of a key, that are waited for; further ones take their chance.
OWED_MAX: Final = 100


class Turns:
    """The daemons that come before our next change of a key."""

    def __init__(self) -> None:
        #: By key and writer, until when we wait for it, in seconds of the event loop.
        self._owed: dict[str, dict[str, float]] = {}
        #: By key, wakes whoever waits; there is one at most, because changes of a key are serialised.
        self._waiting: dict[str, asyncio.Event] = {}

    def note_loss(self, key: str, writer: str) -> None:
        """A record of `writer` lost to one of ours."""
        now_s = asyncio.get_running_loop().time()
        if key not in self._owed and len(self._owed) >= OWED_MAX:
            self._owed = {
                each: writers
                for each, writers in self._owed.items()
                if max(writers.values()) > now_s
            }
        if key in self._owed or len(self._owed) < OWED_MAX:
            writers = self._owed.setdefault(key, {})
            if writer in writers or len(writers) < OWED_MAX:
                writers[writer] = now_s + TURN_S

    def note_win(self, key: str, writer: str) -> None:
        """A record of `writer` counts."""
        if (writers := self._owed.get(key)) is not None:
            writers.pop(writer, None)
            if not writers:
                del self._owed[key]
                if (event := self._waiting.get(key)) is not None:
                    event.set()

    async def wait(self, key: str) -> None:
        """Return once nobody comes before our next change of `key`."""
        if (writers := self._owed.get(key)) is None:
            return
        event = self._waiting[key] = asyncio.Event()
        try:
            async with asyncio.timeout_at(max(writers.values())):
                await event.wait()
        except TimeoutError:
            self._owed.pop(key, None)
        finally:
            del self._waiting[key]
