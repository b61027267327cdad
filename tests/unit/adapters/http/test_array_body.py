"""What comes out of an array: its items in order, or one fault for all of it."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.http import array_body
from rgd.adapters.http.array_body import ArrayReader
from rgd.adapters.http.bodies import AcquireBody
from rgd.adapters.http.errors import BadBody, BatchTooLarge

MANY = 1_000_000


def read(body: bytes, batch_max: int = MANY) -> list[AcquireBody | msgspec.Raw]:
    return ArrayReader(AcquireBody).read(body, batch_max)


SPACE = st.sampled_from([b"", b" ", b"\n\t "])
GOOD = st.fixed_dictionaries(
    {
        "tenant": st.text(max_size=30),
        "namespace": st.sampled_from(["orders", 'a"b', "{[", "\\", "]}"]),
    },
    optional={"messages": st.integers(0, 1 << 62), "partial": st.booleans()},
)
NESTED = st.recursive(
    st.none() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
ITEM = st.one_of(GOOD, st.dictionaries(st.text(max_size=8), NESTED, max_size=4)).map(
    msgspec.json.encode
)


@given(items=st.lists(ITEM, min_size=1, max_size=30), space=SPACE, copies=st.integers(1, 4))
def test_the_items_are_those_of_the_array_in_order(
    items: list[bytes], space: bytes, copies: int
) -> None:
    all_items = items * copies
    body = space + b"[" + space + (space + b"," + space).join(all_items) + space + b"]" + space

    found = read(body)

    assert len(found) == len(all_items)
    for item, written in zip(found, all_items, strict=True):
        if isinstance(item, AcquireBody):
            assert item == msgspec.json.decode(written, type=AcquireBody)
        else:
            assert bytes(item) == written


@pytest.mark.parametrize(
    "tail",
    [
        b"",
        b",]",
        b"}]",
        b"] x",
        b"]]",
        b",7]",
        b",null]",
        b",[]]",
        b',{"a":]}]',
        b',{"a":NaN}]',
        b',{"a":1',
        b',{"a":"',
        b',{"a":' + b"[" * 20_000,
    ],
)
def test_a_large_body_that_is_no_array_of_objects_is_refused_whole(tail: bytes) -> None:
    good = b",".join([b'{"group":"gold"}'] * 2000)
    with pytest.raises(BadBody, match=r"^body: expected ") as caught:
        read(b"[" + good + tail)

    assert len(str(caught.value)) < 300


def test_a_name_that_stands_twice_leaves_its_item_raw() -> None:
    items = [b'{"group":"gold"}', b'{"group":"gold","group":"trial"}', b'{"group" : "gold"}']

    found = read(b"[" + b",".join(items) + b"]")

    assert [bytes(item) for item in found if isinstance(item, msgspec.Raw)] == items


def test_reading_stops_at_the_first_item_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(array_body, "_decode_raw", None)
        with pytest.raises(BatchTooLarge):
            read(b"[" + b"{}," * 1000 + b"{}]", 1000)
    assert len(read(b"[" + b"{}," * 999 + b"{}]", 1000)) == 1000
