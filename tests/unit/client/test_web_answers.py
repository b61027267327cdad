"""What a `Content-Length` says, whatever a server lets through."""

import pytest

from rgd.client.answers import AMOUNT_MAX
from rgd.client.web_answers import length_of


@pytest.mark.parametrize(
    ("header", "size"),
    [
        ("", 0),
        ("12", 12),
        (b"12", 12),
        ("-1", 0),
        ("\N{SUPERSCRIPT TWO}", 0),
        ("9" * 5000, AMOUNT_MAX),
    ],
)
def test_a_length_is_a_number_whatever_was_sent(header: str | bytes, size: int) -> None:
    assert length_of(header) == size
