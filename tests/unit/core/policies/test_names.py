"""Names in one spelling: what is taken, what is refused and with which words.

Not covered: which error becomes which HTTP status (tests/unit/adapters/http).
"""

import pytest

from rgd.core.errors import InvalidName
from rgd.core.policies import names
from tests.support.cases import cases

LONGEST = "x" * names.NAME_MAX


def test_half_a_namespace_is_refused_with_what_is_missing() -> None:
    with pytest.raises(InvalidName, match=r"^namespace: expected tenant/namespace, got 'acme'"):
        names.parse_namespace("acme")


@pytest.mark.parametrize("full", ["acme/", "/orders", "acme/or ders", "a/b/c"])
def test_what_is_no_full_namespace_is_refused(full: str) -> None:
    with pytest.raises(InvalidName, match=r"^attach: expected"):
        names.parse_namespace(full, "attach")


@cases(
    "topic, full",
    {
        "local": ("eu", "persistent://acme/orders/eu"),
        "longest": (LONGEST, f"persistent://acme/orders/{LONGEST}"),
        "anything-printable": ("a/b|c %", "persistent://acme/orders/a/b|c %"),
        "full": ("persistent://acme/orders/eu", "persistent://acme/orders/eu"),
        "other-domain": ("non-persistent://acme/orders/eu", "non-persistent://acme/orders/eu"),
        "full-with-slashes": ("persistent://acme/orders/a/b", "persistent://acme/orders/a/b"),
        "partition": ("eu-partition-0", "persistent://acme/orders/eu-partition-0"),
    },
)
def test_a_topic_has_one_spelling(topic: str, full: str) -> None:
    assert names.topic_of("acme/orders", topic) == full


@cases(
    "topic, words",
    {
        "empty": ("", "topic: expected 1 to 512 printable"),
        "control": ("a\x00b", "printable characters, got 'a.x00b'"),
        "delete": ("a\x7f", "printable"),
        "byte-that-was-no-utf-8": ("a\udcff", "printable characters, got 'a.udcff'"),
        "long": (LONGEST + "x", "expected 1 to 512"),
        "elsewhere": ("persistent://acme/other/eu", "of namespace 'acme/orders'"),
        "scheme": ("http://acme/orders/eu", "expected persistent://tenant"),
        "short": ("persistent://acme/orders", "expected persistent://tenant"),
        "no-local-name": ("persistent://acme/orders/", "topic: expected 1 to 512"),
        "tenant": ("persistent://a b/orders/eu", "topic's tenant: expected"),
        "namespace": ("persistent://acme/a b/eu", "topic's namespace: expected"),
    },
)
def test_what_is_no_topic_of_the_namespace_is_refused(topic: str, words: str) -> None:
    with pytest.raises(InvalidName, match=words):
        names.topic_of("acme/orders", topic)


@cases(
    "local, partitioned",
    {
        "first": ("eu-partition-0", "eu"),
        "last": ("eu-partition-2147483647", "eu"),
        "beyond-int32": ("eu-partition-2147483648", None),
        "leading-zero": ("eu-partition-01", None),
        "no-number": ("eu-partition-", None),
        "negative": ("eu-partition--1", None),
        "more-behind": ("eu-partition-1x", None),
        "digits-of-another-script": ("eu-partition-\u0661", None),
        "none": ("eu", None),
        "no-name-left": ("-partition-0", None),
        "a-slash-is-a-name": ("a/-partition-0", "a/"),
        "the-last-ending-counts": ("eu-partition-1-partition-2", "eu-partition-1"),
    },
)
def test_a_partition_is_recognised_by_its_ending_as_in_pulsar(
    local: str, partitioned: str | None
) -> None:
    base = "persistent://acme/orders/"
    expected = None if partitioned is None else base + partitioned
    assert names.partitioned_topic_of(base + local) == expected
