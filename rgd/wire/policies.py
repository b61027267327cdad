"""The encoding of policies in the policies table: compact, readable JSON.

    group:gold   {"version":1,"revision":3,"writer":"b1","value":{"publish":{"messages":1000}}}

Law: `decode_policy(record.key, encode_policy(record)) == record`, exactly: rates are units per second
with at most three decimals, and never pass through a float. The table's key has the type of the value
(`rgd.core.policies.records`), so it is not written again; null means deleted. In a limit, an absent
kind is not set, and `{}` is set to no limit. A decoder accepts nothing else:
unknown fields, wrong types, zero rates and finer rates are refused, so that every daemon reads a record
in the same way or refuses it.

`rgd.config` reads groups files, and `rgd.adapters.http` HTTP bodies.
"""

import hashlib
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Raw, Struct

from rgd.core.errors import InvalidName
from rgd.core.policies import names, records
from rgd.core.policies.model import (
    UNLIMITED,
    BacklogAction,
    BacklogQuota,
    BacklogQuotas,
    Group,
    Limit,
    LocalLimit,
    Rate,
    Rates,
    SharePolicyName,
    TopicSplit,
)
from rgd.core.policies.records import REVISION_MAX, PolicyRecord, Value
from rgd.core.policies.snapshot import PolicySnapshot
from rgd.core.shares.model import PPM
from rgd.core.units import MILLI, QUOTA_MAX
from rgd.wire.checks import check_broker, check_group
from rgd.wire.errors import Malformed, Reason, UnknownVersion
from rgd.wire.parts import check_size

VERSION: Final = 1
#: Largest record that is read, in bytes; names are limited, so none that is written comes near.
POLICY_MAX: Final = 16 * 1024
#: Longest key that is read, in characters; names are limited, so none that is written comes near.
KEY_CHARS_MAX: Final = 4096
#: Longest period of a dispatch rate, as Pulsar's `ratePeriodInSecond` (an int32) can say it.
PERIOD_S_MAX: Final = (1 << 31) - 1

_HASH_MASK: Final = (1 << 63) - 1

_Units = int | Decimal | None
#: What Pulsar's long `limitSize` and int `limitTime` can say; below 0 is unlimited.
_SizeBytes = Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_AgeS = Annotated[int, Meta(ge=-(1 << 31), le=(1 << 31) - 1)]


class _Form(Struct, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """An object of a record, in the order in which its fields are written."""


class _Rates(_Form):
    messages: _Units = None
    bytes: _Units = None


class _Group(_Form):
    publish: _Rates | None = None
    dispatch: _Rates | None = None
    blocked: bool = False
    shadow: bool = False
    soft_ppm: Annotated[int, Meta(ge=1, le=PPM)] | None = None
    policy: SharePolicyName | None = None
    topic_split: TopicSplit | None = None


class _LocalLimit(_Form):
    publish: _Rates | None = None
    dispatch: _Rates | None = None
    dispatch_period_s: Annotated[int, Meta(ge=1, le=PERIOD_S_MAX)] = 1
    dispatch_relative: bool = False


class _Quota(_Form, kw_only=True):
    size_bytes: _SizeBytes = -1
    age_s: _AgeS = -1
    action: BacklogAction


class _Quotas(_Form):
    size: _Quota | None = None
    age: _Quota | None = None


class _Record(_Form):
    version: int
    revision: Annotated[int, Meta(ge=0, le=REVISION_MAX)]
    writer: str
    value: Raw


class _Version(Struct):
    version: int


#: What a record's JSON is read as; None is deleted.
_Value = _Group | str | _LocalLimit | _Quotas | None
_Decode = Callable[[Raw], _Value]

_encode: Final = msgspec.json.Encoder(decimal_format="number").encode
_decode_record: Final = msgspec.json.Decoder(_Record).decode
_decode_version: Final = msgspec.json.Decoder(_Version).decode
_decode_group: Final[_Decode] = msgspec.json.Decoder(_Group | None).decode
_decode_attachment: Final[_Decode] = msgspec.json.Decoder(str | None).decode
_decode_limit: Final[_Decode] = msgspec.json.Decoder(_LocalLimit | None).decode
_decode_quotas: Final[_Decode] = msgspec.json.Decoder(_Quotas | None).decode


def encode_policy(record: PolicyRecord) -> bytes:
    """Write a record's value for its key.

    Raises:
        WireError: the value does not belong to the key, or a name or number cannot be one.
    """
    value = Raw(_value_json(record.key, record.value))
    data = _encode(_Record(VERSION, record.revision, record.writer, value))
    # What could not be read back is not written.
    if decode_policy(record.key, data) != record:
        raise Malformed(Reason.BAD_STRUCTURE, f"policy: {record.key} cannot hold that value")
    return data


def decode_policy(key: str, data: bytes) -> PolicyRecord:
    """Read what the table holds under `key`.

    Raises:
        WireError: with the reason, whatever is wrong.
    """
    decode_value = _decoder_of(key)
    check_size("policy", len(data), POLICY_MAX)
    try:
        if (version := _decode_version(data).version) != VERSION:
            raise UnknownVersion("policy", version)
        record = _decode_record(data)
        value = _value_of(key, decode_value(record.value))
    except msgspec.ValidationError as exc:
        raise Malformed(Reason.BAD_STRUCTURE, f"policy: {exc}") from exc
    except (ValueError, RecursionError) as exc:
        raise Malformed(Reason.UNPARSABLE, f"policy: {exc}") from exc
    return PolicyRecord(key, record.revision, check_broker(record.writer), value)


def policy_text(key: str, value: Value) -> str:
    """A policy's value alone, as JSON.

    Raises:
        Malformed: as `encode_policy`.
    """
    return _value_json(key, value).decode()


def policy_digest(key: str, value: Value) -> int:
    """A digest of one policy in force, below 2^63; 0 where nothing is.

    The sum of all of them, in any order, is the hash by which daemons know that they have the same
    policies. Who wrote a policy when is not in it, so it is the same for what is written back.

    Raises:
        Malformed: as `encode_policy`.
    """
    if value is None:
        return 0
    said = key.encode() + b"\0" + _value_json(key, value)
    return int.from_bytes(hashlib.blake2b(said, digest_size=8).digest(), "big") >> 1


def policies_hash(snapshot: PolicySnapshot) -> int:
    """A hash of all policies, 1 to 2^63 - 1: by it daemons know that they have the same.

    Raises:
        Malformed: as `encode_policy`.
    """
    return hash_of_digests(
        sum(policy_digest(key, value) for key, value in records.values_of(snapshot))
    )


def hash_of_digests(total: int) -> int:
    """The hash of policies whose digests sum to this."""
    return (total & _HASH_MASK) or 1


def _decoder_of(key: str) -> _Decode:
    """Reads what a key holds; checks the key."""
    check_size("policy key", len(key), KEY_CHARS_MAX)
    if key == records.LIMIT_BROKER:
        return _decode_limit
    for prefix, check, decode_value in _KEYS:
        if key.startswith(prefix):
            try:
                check(key.removeprefix(prefix))
            except InvalidName as exc:
                raise Malformed(Reason.BAD_NAME, f"policy key: {exc}") from exc
            return decode_value
    raise Malformed(Reason.BAD_NAME, "policy key: it starts with no prefix that is known")


def _check_subscription(name: str) -> None:
    topic, subscription = records.subscription_of(name)
    names.parse_topic(topic)
    names.check_subscription(subscription)
    # Two spellings of one name would be two records of one limit.
    if records.subscription_name(topic, subscription) != name:
        raise InvalidName("topic: expected its % and | written as %25 and %7C")


#: What each prefix is followed by, and how what is kept there is read; no prefix begins another one.
_KEYS: Final[tuple[tuple[str, Callable[[str], object], _Decode], ...]] = (
    (records.GROUP, partial(names.check_entity, field="group"), _decode_group),
    (records.TENANT, partial(names.check_entity, field="tenant"), _decode_attachment),
    (records.NAMESPACE, names.parse_namespace, _decode_attachment),
    (records.TOPIC, names.parse_topic, _decode_attachment),
    (records.LIMIT_NAMESPACE, names.parse_namespace, _decode_limit),
    (records.LIMIT_TOPIC, names.parse_topic, _decode_limit),
    (records.LIMIT_SUBSCRIPTION, _check_subscription, _decode_limit),
    (records.LIMIT_NAMESPACE_SUBSCRIPTIONS, names.parse_namespace, _decode_limit),
    (records.LIMIT_TOPIC_SUBSCRIPTIONS, names.parse_topic, _decode_limit),
    (records.BACKLOG_NAMESPACE, names.parse_namespace, _decode_quotas),
    (records.BACKLOG_TOPIC, names.parse_topic, _decode_quotas),
)


# --- writing ---


def _value_json(key: str, value: Value) -> bytes:
    match value:
        case Group():
            if key != records.GROUP + value.name:
                raise Malformed(Reason.BAD_NAME, f"policy: {key} holds group {value.name!r}")
            return _encode(
                _Group(
                    _limit_form(value.quota.publish),
                    _limit_form(value.quota.dispatch),
                    value.blocked,
                    value.shadow,
                    value.soft_ppm,
                    value.policy,
                    value.topic_split,
                )
            )
        case LocalLimit():
            return _encode(
                _LocalLimit(
                    _set_form(value.publish),
                    _set_form(value.dispatch),
                    value.dispatch_period_s,
                    value.dispatch_relative,
                )
            )
        case BacklogQuotas():
            return _encode(_Quotas(_quota_form(value.size), _quota_form(value.age)))
        case str():
            return _encode(check_group(value))
        case None:
            return _encode(None)


def _limit_form(rates: Rates) -> _Rates | None:
    """In a group's quota, unlimited is not said."""
    return None if rates.is_unlimited else _set_form(rates)


def _set_form(rates: Rates | None) -> _Rates | None:
    """In a limit, it is: unlimited is `{}`, and only a kind that is not set is absent."""
    return None if rates is None else _Rates(_units(rates.messages), _units(rates.bytes))


def _units(rate: Rate) -> _Units:
    if rate is None:
        return None
    units, thousandths = divmod(_checked(rate), MILLI)
    return Decimal(f"{units}.{thousandths:03}".rstrip("0")) if thousandths else units


def _quota_form(quota: BacklogQuota | None) -> _Quota | None:
    if quota is None:
        return None
    return _Quota(size_bytes=quota.size_bytes, age_s=quota.age_s, action=quota.action)


# --- reading ---


def _value_of(key: str, form: _Value) -> Value:
    match form:
        case _Group():
            return Group(
                key.removeprefix(records.GROUP),
                Limit(_rates_of(form.publish) or UNLIMITED, _rates_of(form.dispatch) or UNLIMITED),
                form.blocked,
                form.shadow,
                form.soft_ppm,
                form.policy,
                form.topic_split,
            )
        case _LocalLimit():
            return LocalLimit(
                _rates_of(form.publish),
                _rates_of(form.dispatch),
                form.dispatch_period_s,
                form.dispatch_relative,
            )
        case _Quotas():
            return BacklogQuotas(_quota_of(form.size), _quota_of(form.age))
        case str():
            return check_group(form)
        case None:
            return None


def _quota_of(form: _Quota | None) -> BacklogQuota | None:
    if form is None:
        return None
    return BacklogQuota(form.size_bytes, form.age_s, form.action)


def _rates_of(form: _Rates | None) -> Rates | None:
    return None if form is None else Rates(_rate(form.messages), _rate(form.bytes))


def _rate(units: _Units) -> Rate:
    """A rate from units per second; absent is unlimited."""
    if units is None:
        return None
    # Bounded first: a number of a long exponent takes seconds to become an integer.
    if not Decimal(units).is_finite() or not 0 < units <= QUOTA_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"rate: expected above 0, at most {QUOTA_MAX}")
    if (rate := int(units * MILLI)) != units * MILLI:
        raise Malformed(Reason.BAD_NUMBER, "rate: expected at most three decimals")
    return _checked(rate)


def _checked(rate: int) -> int:
    if not 0 < rate <= QUOTA_MAX * MILLI:
        raise Malformed(Reason.BAD_NUMBER, f"rate: expected above 0, at most {QUOTA_MAX}")
    return rate
