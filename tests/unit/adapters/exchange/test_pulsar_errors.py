"""What a person is told about each kind of fault of the Pulsar client.

Not covered here: that the client has these faults in these situations (tests/contract/exchange).
"""

import pulsar
import pytest

from rgd.adapters.exchange.pulsar_errors import translate
from rgd.errors import ConfigError
from rgd.ports.exchange import ExchangeDown

URL = "pulsar://broker.example:6650"
TOPIC = "persistent://acme/limits/policies"


@pytest.mark.parametrize(
    ("fault", "remedy"),
    [
        ("Timeout", "check that a Pulsar broker listens there"),
        ("ConnectError", "set exchange.url"),
        ("AuthenticationError", "check exchange.token_file"),
        ("AuthorizationError", "produce to and consume from the topic"),
        ("TopicNotFound", "pulsar-admin namespaces create acme/limits"),
        ("MessageTooBig", "maxMessageSize"),
        ("ProducerQueueIsFull", "too many messages wait"),
    ],
)
def test_a_fault_is_reported_with_place_and_remedy(fault: str, remedy: str) -> None:
    error = translate(fault, url=URL, topic=TOPIC)
    assert isinstance(error, ExchangeDown)
    for part in (URL, TOPIC, fault, remedy):
        assert part in str(error)


def test_every_fault_the_client_knows_has_a_translation() -> None:
    for name in (name for name in dir(pulsar.Result) if name[0].isupper() and name != "Ok"):
        error = translate(name, url=URL, topic=TOPIC)
        expected = ConfigError if name == "InvalidTopicName" else ExchangeDown
        assert isinstance(error, expected)
