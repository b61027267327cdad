"""Names in one spelling: what is taken, what is refused and with which words.

Not covered: which error becomes which HTTP status (tests/unit/adapters/http).
"""

import pytest

from rgd.core.errors import InvalidName
from rgd.core.policies import names

LONGEST = "x" * names.NAME_MAX


def test_half_a_namespace_is_refused_with_what_is_missing() -> None:
    with pytest.raises(InvalidName, match=r"^namespace: expected tenant/namespace, got 'acme'"):
        names.parse_namespace("acme")


@pytest.mark.parametrize("full", ["acme/", "/orders", "acme/or ders", "a/b/c"])
def test_what_is_no_full_namespace_is_refused(full: str) -> None:
    with pytest.raises(InvalidName, match=r"^attach: expected"):
        names.parse_namespace(full, "attach")


@pytest.mark.parametrize(
    ("topic", "full"),
    [
        pytest.param("eu", "persistent://acme/orders/eu", id="local"),
        pytest.param(LONGEST, f"persistent://acme/orders/{LONGEST}", id="longest"),
        pytest.param("a/b|c %", "persistent://acme/orders/a/b|c %", id="anything-printable"),
        pytest.param("persistent://acme/orders/eu", "persistent://acme/orders/eu", id="full"),
        pytest.param(
            "non-persistent://acme/orders/eu", "non-persistent://acme/orders/eu", id="other-domain"
        ),
        pytest.param(
            "persistent://acme/orders/a/b", "persistent://acme/orders/a/b", id="full-with-slashes"
        ),
        pytest.param("eu-partition-0", "persistent://acme/orders/eu-partition-0", id="partition"),
    ],
)
def test_a_topic_has_one_spelling(topic: str, full: str) -> None:
    assert names.topic_of("acme/orders", topic) == full


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        pytest.param("", "topic: expected 1 to 512 printable", id="empty"),
        pytest.param("a\x00b", "printable characters, got 'a.x00b'", id="control"),
        pytest.param("a\x7f", "printable", id="delete"),
        pytest.param(LONGEST + "x", "expected 1 to 512", id="long"),
        pytest.param("persistent://acme/other/eu", "of namespace 'acme/orders'", id="elsewhere"),
        pytest.param("http://acme/orders/eu", "expected persistent://tenant", id="scheme"),
        pytest.param("persistent://acme/orders", "expected persistent://tenant", id="short"),
        pytest.param("persistent://acme/orders/", "topic: expected 1 to 512", id="no-local-name"),
        pytest.param("persistent://a b/orders/eu", "topic's tenant: expected", id="tenant"),
        pytest.param("persistent://acme/a b/eu", "topic's namespace: expected", id="namespace"),
    ],
)
def test_what_is_no_topic_of_the_namespace_is_refused(topic: str, words: str) -> None:
    with pytest.raises(InvalidName, match=words):
        names.topic_of("acme/orders", topic)


@pytest.mark.parametrize(
    ("local", "partitioned"),
    [
        pytest.param("eu-partition-0", "eu", id="first"),
        pytest.param("eu-partition-2147483647", "eu", id="last"),
        pytest.param("eu-partition-2147483648", None, id="beyond-int32"),
        pytest.param("eu-partition-01", None, id="leading-zero"),
        pytest.param("eu-partition-", None, id="no-number"),
        pytest.param("eu-partition--1", None, id="negative"),
        pytest.param("eu-partition-1x", None, id="more-behind"),
        pytest.param("eu-partition-\u0661", None, id="digits-of-another-script"),
        pytest.param("eu", None, id="none"),
        pytest.param("-partition-0", None, id="no-name-left"),
        pytest.param("a/-partition-0", "a/", id="a-slash-is-a-name"),
        pytest.param("eu-partition-1-partition-2", "eu-partition-1", id="the-last-ending-counts"),
    ],
)
def test_a_partition_is_recognised_by_its_ending_as_in_pulsar(
    local: str, partitioned: str | None
) -> None:
    base = "persistent://acme/orders/"
    expected = None if partitioned is None else base + partitioned
    assert names.partitioned_topic_of(base + local) == expected
