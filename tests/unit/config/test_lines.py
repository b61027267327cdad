"""The lines of dotted keys: where a key is first said, or the nearest one above it.

Not covered: that each fault has its line (test_bad_config).
"""

import pytest

from rgd.config.document import parse_document

TEXT = b"""\
groups:
  gold: &gold
    publish:
      messages: x

  silver: *gold
  gold: {}
list:
- a
- {b: 1,
   c: [5,
       6]}
? long
: 1
"""


@pytest.mark.parametrize(
    ("key", "line"),
    [
        pytest.param("groups", 1, id="top"),
        pytest.param("groups.gold.publish.messages", 4, id="inside"),
        pytest.param("groups.gold", 2, id="the-first-of-two"),
        pytest.param("groups.silver.publish.messages", 6, id="behind-an-alias"),
        pytest.param("groups.gold.publish.bytes", 3, id="missing"),
        pytest.param("list.0", 9, id="item"),
        pytest.param("list.1.c.1", 12, id="item-inside"),
        pytest.param("list.7", 8, id="no-such-item"),
        pytest.param("long", 13, id="key-with-a-mark"),
        pytest.param("nowhere", None, id="nowhere"),
    ],
)
def test_a_key_is_found_where_it_is_first_said(key: str, line: int | None) -> None:
    faults = parse_document(TEXT, "test.yaml").faults
    faults.found.clear()
    faults.add(key, "wrong")
    assert [fault.line for fault in faults.listed()] == [line]
