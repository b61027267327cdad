"""Large arrays are cut between their items: what comes out is what one call of the decoder gives."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.http import array_body
from rgd.adapters.http.array_body import PIECE_BYTES, PIECE_ITEMS, ArrayReader
from rgd.adapters.http.bodies import AcquireBody
from rgd.adapters.http.errors import BadBody, BatchTooLarge
from rgd.adapters.http.strict import OBJECT_BYTES_MAX
from rgd.adapters.http.turns import Turns

MANY = 1_000_000


class Counted(Turns):
    """Counts how often the reader rested."""

    def __init__(self) -> None:
        super().__init__()
        self.rests = 0

    async def next(self, work: int = 0) -> None:
        self.rests += 1


async def read(body: bytes, batch_max: int = MANY) -> list[AcquireBody | msgspec.Raw]:
    return await ArrayReader(AcquireBody).read(body, batch_max, Counted())


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


@pytest.mark.slow
@given(items=st.lists(ITEM, min_size=1, max_size=30), space=SPACE, copies=st.integers(1, 40))
async def test_the_items_are_those_of_the_whole_array(
    items: list[bytes], space: bytes, copies: int
) -> None:
    filler = b'{"group":"%s"}' % (b"x" * 500)
    all_items = [*items, *[filler] * (PIECE_BYTES // 500), *items * copies]
    body = space + b"[" + space + (space + b"," + space).join(all_items) + space + b"]" + space

    found = await read(body)

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
        b',{"a":"' + b"x" * OBJECT_BYTES_MAX + b'"}]',
        b',{"a":[' + b"[]," * OBJECT_BYTES_MAX + b"[]]}]",
        b"," + b" " * 3 * OBJECT_BYTES_MAX + b"{}]",
        b"]" + b" " * 3 * OBJECT_BYTES_MAX,
    ],
)
async def test_a_large_body_that_is_no_array_of_objects_is_refused_whole(tail: bytes) -> None:
    good = b",".join([b'{"group":"gold"}'] * 2000)
    assert len(good) > PIECE_BYTES

    with pytest.raises(BadBody, match=r"^body: expected ") as caught:
        await read(b"[" + good + tail)

    assert len(str(caught.value)) < 300


async def test_a_name_that_stands_twice_leaves_its_item_raw() -> None:
    items = [b'{"group":"gold"}', b'{"group":"gold","group":"trial"}', b'{"group" : "gold"}']

    found = await read(b"[" + b",".join(items) + b"]")

    assert [bytes(item) for item in found if isinstance(item, msgspec.Raw)] == items


async def test_reading_stops_at_the_first_item_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: list[int] = []
    decode = array_body._decode_skipped

    def count(array: bytes) -> object:
        decoded.append(len(array))
        return decode(array)

    monkeypatch.setattr(array_body, "_decode_skipped", count)
    work = Counted()

    with pytest.raises(BatchTooLarge):
        await ArrayReader(AcquireBody).read(b"[" + b"{}," * 2_700_000 + b"{}]", 10_000, work)

    assert work.rests <= 10_000 // PIECE_ITEMS
    assert sum(decoded) < 40_000


@pytest.mark.slow
async def test_no_call_of_the_decoder_sees_more_than_a_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    reader = ArrayReader(AcquireBody)
    shared = ("_decode_raw", "_decode_skipped", "_decode_members")
    decoders: list[tuple[object, str]] = [(array_body, name) for name in shared]
    decoders.append((reader, "_decode_many"))
    for where, name in decoders:
        decode = getattr(where, name)

        def count(array: bytes, decode: object = decode) -> object:
            seen.append(len(array))
            assert callable(decode)
            return decode(array)

        monkeypatch.setattr(where, name, count)
    flat = b'{"tenant":"acme","namespace":"orders","topic":"eu","messages":3}'
    nested = b'{"a":[' + b"[]," * 8000 + b"[]]}"
    work = Counted()

    await reader.read(b"[" + b",".join([flat, nested] * 200 + [flat] * 4000) + b"]", MANY, work)

    assert max(seen) <= PIECE_BYTES + OBJECT_BYTES_MAX
    assert work.rests >= 200
