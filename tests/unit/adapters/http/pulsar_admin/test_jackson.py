"""Values of a lenient body: what says something, what says nothing, what is refused.

Which of these stock Pulsar reads alike was found by asking one; it is not asked here.
"""

import pytest

from rgd.adapters.http.errors import BadBody
from rgd.adapters.http.pulsar_admin.jackson import INT32_MAX, flag, integer


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (7, 7),
        (-5, -5),
        (INT32_MAX, INT32_MAX),
        (-INT32_MAX - 1, -INT32_MAX - 1),
        (7.9, 7),
        (-7.9, -7),
        ("7", 7),
        (" +7 ", 7),
        ("-7", -7),
        ("", None),
        ("  ", None),
        (None, None),
    ],
)
def test_an_integer_is_read(said: float | str | None, value: int | None) -> None:
    assert integer(said, "field", INT32_MAX) == value


@pytest.mark.parametrize(
    "said",
    ["many", "1e3", "1.5", "0x1", "1_000", "٣", INT32_MAX + 1, -INT32_MAX - 2, 1e30, "9" * 19],
)
def test_what_is_no_integer_of_that_width_is_refused_by_name(said: float | str) -> None:
    with pytest.raises(
        BadBody, match=r"^field: expected an integer from -2147483648 to 2147483647"
    ):
        integer(said, "field", INT32_MAX)


@pytest.mark.parametrize(
    ("said", "value"),
    [
        (True, True),
        (False, False),
        (1, True),
        (-1, True),
        (0, False),
        ("true", True),
        ("True", True),
        ("TRUE", True),
        (" false ", False),
        ("False", False),
        ("FALSE", False),
        ("", False),
        (None, False),
    ],
)
def test_a_flag_is_read(said: float | str | None, *, value: bool) -> None:
    assert flag(said, "field") is value
