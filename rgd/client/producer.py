"""A producer of `pulsar-client` that asks before it sends, and gives back what was not sent.

Laws: a message that Pulsar did not take is settled, so it does not count against the quota. Pulsar's own
answer always reaches the caller: nothing of this client raises in a callback of Pulsar's threads, which would
end the process. It imports no Pulsar: it is given a producer.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from rgd.client.answers import Answer
from rgd.client.blocking import BlockingLimiter
from rgd.client.errors import ClientClosed
from rgd.errors import RgdError

#: What `send_async` tells of: a result of `pulsar.Result`, and the message's id.
OnSent = Callable[[Any, Any], None]


class Limited(RgdError):
    """The message was not sent, because a limit refused it."""

    transient = True

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(
            f"refused by {answer.limited_by or 'the client, without a daemon'}; "
            f"retry after {answer.retry_after_ms or 0} ms"
        )


class Producer(Protocol):
    """As `pulsar.Producer`."""

    def send(self, content: bytes, **options: Any) -> Any: ...

    def send_async(self, content: bytes, callback: OnSent, **options: Any) -> None: ...


class AskingProducer:
    """Sends what the limiter grants.

    Args:
        producer: a `pulsar.Producer` of bytes.
        limiter: of its topic.
        wait_s: how long a message waits for its turn before it is refused.
    """

    def __init__(
        self, producer: Producer, limiter: BlockingLimiter, *, wait_s: float = 0.0
    ) -> None:
        self._producer = producer
        self._limiter = limiter
        self._wait_s = wait_s

    def send(self, content: bytes, **options: Any) -> Any:
        """Send; the message's id.

        Raises:
            Limited: a limit refused it.
            QuestionRefused: it is more than could ever be granted (413), or the name or the token is at fault.
        """
        answer = self._ask(content)
        try:
            return self._producer.send(content, **options)
        except BaseException:
            self._give_back(answer)
            raise

    def send_async(self, content: bytes, callback: OnSent, **options: Any) -> None:
        """Send; the callback is told the result and the message's id.

        Raises:
            Limited, QuestionRefused: as of `send`; the callback is not called.
        """
        answer = self._ask(content)

        def on_sent(result: Any, message_id: Any) -> None:
            if result.name != "Ok":
                self._give_back(answer)
            callback(result, message_id)

        try:
            self._producer.send_async(content, on_sent, **options)
        except BaseException:
            self._give_back(answer)
            raise

    def _ask(self, content: bytes) -> Answer:
        answer = self._limiter.acquire(1, len(content), wait_s=self._wait_s)
        if not answer.granted:
            raise Limited(answer)
        return answer

    def _give_back(self, answer: Answer) -> None:
        """Settle a message that was not sent; a client that is closed meanwhile cannot."""
        with suppress(ClientClosed):
            self._limiter.settle(answer)
