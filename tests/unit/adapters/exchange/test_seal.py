"""What a seal lets through: exactly what its holders said, for this topic and key, and lately."""

from hypothesis import given
from hypothesis import strategies as st

from rgd.adapters.exchange.seal import AGE_NS_MAX, SEAL_BYTES, SECRET_BYTES, Seal

SECRET = bytes(range(SECRET_BYTES))


class Clock:
    def __init__(self, now_ns: int = 10**15) -> None:
        self.now_ns = now_ns

    def now(self) -> int:
        return self.now_ns


def seal(
    clock: Clock, *, secret: bytes = SECRET, topic: str = "topic", must_be_fresh: bool = True
) -> Seal:
    return Seal(secret, topic, clock.now, must_be_fresh=must_be_fresh)


@given(payload=st.binary(max_size=200), key=st.text(max_size=20))
def test_what_a_member_seals_another_opens(payload: bytes, key: str) -> None:
    clock = Clock()
    sealed = seal(clock).sealed(payload, key)
    assert len(sealed) == len(payload) + SEAL_BYTES
    assert seal(clock).opened(sealed, key) == payload


@given(
    payload=st.binary(max_size=50),
    position=st.integers(min_value=0),
    change=st.integers(min_value=1, max_value=255),
)
def test_one_changed_byte_breaks_it(payload: bytes, position: int, change: int) -> None:
    clock = Clock()
    sealed = bytearray(seal(clock).sealed(payload, "key"))
    sealed[position % len(sealed)] ^= change
    assert seal(clock).opened(bytes(sealed), "key") is None


@given(forged=st.binary(max_size=100))
def test_an_unsealed_message_is_refused(forged: bytes) -> None:
    assert seal(Clock()).opened(forged, "") is None


def test_it_holds_for_one_secret_one_topic_and_one_key() -> None:
    clock = Clock()
    sealed = seal(clock).sealed(b"payload", "key")
    assert seal(clock, secret=bytes(SECRET_BYTES)).opened(sealed, "key") is None
    assert seal(clock, topic="topi").opened(sealed, "ckey") is None
    assert seal(clock, topic="another").opened(sealed, "key") is None
    assert seal(clock).opened(sealed, "another") is None


def test_a_recorded_message_is_of_no_use_later_and_a_kept_record_is() -> None:
    clock = Clock()
    sealed = seal(clock).sealed(b"payload", "key")
    clock.now_ns += AGE_NS_MAX
    assert seal(clock).opened(sealed, "key") == b"payload"
    clock.now_ns += 1
    assert seal(clock).opened(sealed, "key") is None
    # After a restart of the machine its clock begins again.
    assert seal(Clock(0)).opened(sealed, "key") is None
    assert seal(Clock(0), must_be_fresh=False).opened(sealed, "key") == b"payload"
