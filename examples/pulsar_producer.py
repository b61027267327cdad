"""A producer that asks before it sends: a burst of messages, of which as many are sent as the quota allows.

    python examples/pulsar_producer.py pulsar://HOST:PORT

RGD_URL says where the daemon is. A message that is refused waits up to `WAIT_S` for its turn.
"""

import os
import sys

import pulsar

from rgd.client import BlockingClient, ClientSettings, Name
from rgd.client.producer import AskingProducer, Limited

MESSAGES = 40
WAIT_S = 0.05
TOPIC = "persistent://acme/requests/eu"


def main() -> None:
    """Send, and print how many messages were sent."""
    # Not a Python logger: a thread of the client that logs while Python ends would abort the process.
    log = pulsar.FileLogger(pulsar.LoggerLevel.Warn, "/dev/stderr")
    settings = ClientSettings(
        when_away="open", url=os.environ.get("RGD_URL", "http://127.0.0.1:7700")
    )
    connection = pulsar.Client(sys.argv[1], logger=log)
    with BlockingClient(settings) as client:
        limiter = client.limiter(Name("acme", "requests", topic=TOPIC), leased=True)
        producer = connection.create_producer(os.environ.get("TOPIC", TOPIC))
        asking = AskingProducer(producer, limiter, wait_s=WAIT_S)
        sent, last = 0, "none"
        for number in range(MESSAGES):
            try:
                asking.send(b"message %d" % number)
                sent += 1
            except Limited as refused:
                last = str(refused)
        connection.close()
    print(f"{sent} of {MESSAGES} let through, {MESSAGES - sent} refused")
    print(f"the last refusal: {last}")


if __name__ == "__main__":
    main()
