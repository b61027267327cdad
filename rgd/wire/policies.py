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
import json
import re
from collections.abc import Callable, Collection
from decimal import Decimal
from enum import StrEnum
from functools import partial
from typing import Final, NoReturn, TypeVar

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
from rgd.core.shares.model import PPM
from rgd.core.units import MILLI, QUOTA_MAX, Milli
from rgd.wire.checks import check_broker, check_group
from rgd.wire.errors import Malformed, Oversize, Reason, UnknownVersion

VERSION: Final = 1
#: Largest record that is read, in bytes; names are limited, so none that is written comes near.
POLICY_MAX: Final = 16 * 1024
#: Longest key that is read, in characters; names are limited, so none that is written comes near.
KEY_CHARS_MAX: Final = 4096

_RATE_MAX: Final[Milli] = QUOTA_MAX * MILLI
_SURROGATE: Final = re.compile("[\\ud800-\\udfff]")
#: What JSON may write with a point: no exponent, nothing finer than 1/1000.
_DECIMAL: Final = re.compile(r"[0-9]{1,16}\.[0-9]{1,3}")

#: Longest period of a dispatch rate, as Pulsar's `ratePeriodInSecond` (an int32) can say it.
PERIOD_S_MAX: Final = (1 << 31) - 1
#: What Pulsar's long `limitSize` and int `limitTime` can say; below 0 is unlimited.
_SIZE_BYTES: Final = (-(1 << 63), (1 << 63) - 1)
_AGE_S: Final = (-(1 << 31), (1 << 31) - 1)

_GROUP_FIELDS: Final = (
    "publish",
    "dispatch",
    "blocked",
    "shadow",
    "soft_ppm",
    "policy",
    "topic_split",
)
_LIMIT_FIELDS: Final = ("publish", "dispatch", "dispatch_period_s", "dispatch_relative")
_BACKLOG_FIELDS: Final = ("size", "age")
_QUOTA_FIELDS: Final = ("size_bytes", "age_s", "action")

_NO_QUOTA: Final = BacklogQuota()

_Choice = TypeVar("_Choice", bound=StrEnum)
_Shape = type[Group] | type[str] | type[LocalLimit] | type[BacklogQuotas]


def encode_policy(record: PolicyRecord) -> bytes:
    """Write a record's value for its key.

    Raises:
        Malformed: the value does not belong to the key, or a name or number cannot be one.
    """
    shape = _shape_of(record.key)
    if record.value is not None and not isinstance(record.value, shape):
        raise Malformed(Reason.BAD_STRUCTURE, f"policy: {record.key} cannot hold that value")
    text = _object_text(
        version=str(VERSION),
        revision=str(_check_revision(record.revision)),
        writer=json.dumps(check_broker(record.writer)),
        value=_value_text(record.key, record.value),
    )
    return text.encode()


def decode_policy(key: str, data: bytes) -> PolicyRecord:
    """Read what the table holds under `key`.

    Raises:
        WireError: with the reason, whatever is wrong.
    """
    shape = _shape_of(key)
    body = _parse(data)
    if not isinstance(body, dict) or "version" not in body:
        raise Malformed(Reason.MISSING, "policy: expected an object with a version")
    if (version := _integer(body["version"], "version")) != VERSION:
        raise UnknownVersion("policy", version)
    fields = _fields(body, "policy", ("version", "revision", "writer", "value"))
    for field in ("revision", "writer", "value"):
        if field not in fields:
            raise Malformed(Reason.MISSING, f"policy: {field} is missing")
    return PolicyRecord(
        key=key,
        revision=_check_revision(_integer(fields["revision"], "revision")),
        writer=check_broker(_text(fields["writer"], "writer")),
        value=_read_value(key, shape, fields["value"]),
    )


def policy_text(key: str, value: Value) -> str:
    """A policy's value alone, as JSON.

    Raises:
        Malformed: as `encode_policy`.
    """
    return _value_text(key, value)


def policy_value(key: str, text: str) -> Value:
    """A policy's value from its JSON.

    Raises:
        WireError: as `decode_policy`.
    """
    return _read_value(key, _shape_of(key), _parse(text.encode()))


def policy_digest(key: str, value: Value) -> int:
    """A digest of one policy in force, below 2^63; 0 where nothing is.

    The sum of all of them, in any order, is the hash by which daemons know that they have the same
    policies. Who wrote a policy when is not in it, so it is the same for what is written back.

    Raises:
        Malformed: as `encode_policy`.
    """
    if value is None:
        return 0
    text = f"{key}\0{_value_text(key, value)}"
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def _shape_of(key: str) -> _Shape:
    """What a key holds; checks the key."""
    if len(key) > KEY_CHARS_MAX:
        raise Oversize("policy key", len(key), KEY_CHARS_MAX)
    if _SURROGATE.search(key):
        raise Malformed(Reason.BAD_NAME, "policy key: expected text that can be written as UTF-8")
    if key == records.LIMIT_BROKER:
        return LocalLimit
    for prefix, check, shape in _KEYS:
        if key.startswith(prefix):
            try:
                check(key.removeprefix(prefix))
            except InvalidName as exc:
                raise Malformed(Reason.BAD_NAME, f"policy key: {exc}") from exc
            return shape
    raise Malformed(Reason.BAD_NAME, "policy key: it starts with no prefix that is known")


def _check_subscription(name: str) -> None:
    topic, subscription = records.subscription_of(name)
    names.parse_topic(topic)
    names.check_subscription(subscription)
    # Two spellings of one name would be two records of one limit.
    if records.subscription_name(topic, subscription) != name:
        raise InvalidName("topic: expected its % and | written as %25 and %7C")


#: What each prefix is followed by, and what is kept there; no prefix begins another one.
_KEYS: Final[tuple[tuple[str, Callable[[str], object], _Shape], ...]] = (
    (records.GROUP, partial(names.check_entity, field="group"), Group),
    (records.TENANT, partial(names.check_entity, field="tenant"), str),
    (records.NAMESPACE, names.parse_namespace, str),
    (records.TOPIC, names.parse_topic, str),
    (records.LIMIT_NAMESPACE, names.parse_namespace, LocalLimit),
    (records.LIMIT_TOPIC, names.parse_topic, LocalLimit),
    (records.LIMIT_SUBSCRIPTION, _check_subscription, LocalLimit),
    (records.LIMIT_NAMESPACE_SUBSCRIPTIONS, names.parse_namespace, LocalLimit),
    (records.LIMIT_TOPIC_SUBSCRIPTIONS, names.parse_topic, LocalLimit),
    (records.BACKLOG_NAMESPACE, names.parse_namespace, BacklogQuotas),
    (records.BACKLOG_TOPIC, names.parse_topic, BacklogQuotas),
)


# --- writing: JSON's numbers are written by hand, since json has no exact ones ---


def _value_text(key: str, value: Value) -> str:
    match value:
        case None:
            return "null"
        case str():
            return json.dumps(check_group(value))
        case LocalLimit():
            return _local_limit_text(value)
        case BacklogQuotas():
            return _backlog_text(value)
        case Group():
            if key != records.GROUP + value.name:
                raise Malformed(Reason.BAD_NAME, f"policy: {key} holds group {value.name!r}")
            return _group_text(value)


def _group_text(group: Group) -> str:
    texts = _limit_texts(group.quota)
    if group.blocked:
        texts["blocked"] = "true"
    if group.shadow:
        texts["shadow"] = "true"
    if group.soft_ppm is not None:
        texts["soft_ppm"] = str(group.soft_ppm)
    if group.policy is not None:
        texts["policy"] = json.dumps(group.policy.value)
    if group.topic_split is not None:
        texts["topic_split"] = json.dumps(group.topic_split.value)
    return _object_text(**texts)


def _limit_texts(limit: Limit) -> dict[str, str]:
    kinds = {"publish": limit.publish, "dispatch": limit.dispatch}
    return {name: _rates_text(rates) for name, rates in kinds.items() if not rates.is_unlimited}


def _local_limit_text(limit: LocalLimit) -> str:
    kinds = {"publish": limit.publish, "dispatch": limit.dispatch}
    texts = {name: _rates_text(rates) for name, rates in kinds.items() if rates is not None}
    if limit.dispatch_period_s != 1:
        texts["dispatch_period_s"] = str(_check_period(limit.dispatch_period_s))
    if limit.dispatch_relative:
        texts["dispatch_relative"] = "true"
    return _object_text(**texts)


def _backlog_text(quotas: BacklogQuotas) -> str:
    types = {"size": quotas.size, "age": quotas.age}
    return _object_text(
        **{name: _quota_text(quota) for name, quota in types.items() if quota is not None}
    )


def _quota_text(quota: BacklogQuota) -> str:
    texts = {}
    if quota.size_bytes != _NO_QUOTA.size_bytes:
        texts["size_bytes"] = str(_check_between(quota.size_bytes, _SIZE_BYTES, "size_bytes"))
    if quota.age_s != _NO_QUOTA.age_s:
        texts["age_s"] = str(_check_between(quota.age_s, _AGE_S, "age_s"))
    return _object_text(**texts, action=json.dumps(quota.action.value))


def _rates_text(rates: Rates) -> str:
    dimensions = {"messages": rates.messages, "bytes": rates.bytes}
    return _object_text(
        **{name: _rate_text(rate) for name, rate in dimensions.items() if rate is not None}
    )


def _rate_text(rate: Milli) -> str:
    units, thousandths = divmod(_check_rate(rate), MILLI)
    return f"{units}.{thousandths:03}".rstrip("0") if thousandths else str(units)


def _object_text(**fields: str) -> str:
    return "{" + ",".join(f'"{name}":{text}' for name, text in fields.items()) + "}"


# --- reading ---


def _parse(data: bytes) -> object:
    if len(data) > POLICY_MAX:
        raise Oversize("policy", len(data), POLICY_MAX)
    try:
        return _JSON.decode(data.decode())
    except (ValueError, RecursionError) as exc:
        raise Malformed(Reason.UNPARSABLE, f"policy: {exc}") from exc


def _distinct(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Malformed(Reason.DUPLICATE, "policy: a field comes twice")
    return fields


def _decimal(text: str) -> Decimal:
    if not _DECIMAL.fullmatch(text):
        raise Malformed(Reason.BAD_NUMBER, "policy: expected at most three decimals, no exponent")
    return Decimal(text)


def _refuse_constant(name: str) -> NoReturn:
    raise Malformed(Reason.BAD_NUMBER, f"policy: {name} is not a number")


#: One for all: `json.loads` would make one for each record.
_JSON: Final = json.JSONDecoder(
    object_pairs_hook=_distinct, parse_float=_decimal, parse_constant=_refuse_constant
)


def _read_value(key: str, shape: _Shape, value: object) -> Value:
    if value is None:
        return None
    if shape is str:
        return check_group(_text(value, "group"))
    if shape is LocalLimit:
        return _read_local_limit(_fields(value, "limit", _LIMIT_FIELDS))
    if shape is BacklogQuotas:
        return _read_backlog(_fields(value, "backlog", _BACKLOG_FIELDS))
    fields = _fields(value, "group", _GROUP_FIELDS)
    return Group(
        name=key.removeprefix(records.GROUP),
        quota=_read_limit(fields),
        blocked=_flag(fields, "blocked"),
        shadow=_flag(fields, "shadow"),
        soft_ppm=_read_ppm(fields, "soft_ppm"),
        policy=_read_choice(fields, "policy", SharePolicyName),
        topic_split=_read_choice(fields, "topic_split", TopicSplit),
    )


def _read_ppm(fields: dict[str, object], name: str) -> int | None:
    """A part in millionths, above 0; absent is none."""
    if name not in fields:
        return None
    ppm = _integer(fields[name], name)
    if not 0 < ppm <= PPM:
        raise Malformed(Reason.BAD_STRUCTURE, f"{name}: expected a whole number from 1 to {PPM}")
    return ppm


def _read_limit(fields: dict[str, object]) -> Limit:
    return Limit(_read_rates(fields, "publish"), _read_rates(fields, "dispatch"))


def _read_local_limit(fields: dict[str, object]) -> LocalLimit:
    return LocalLimit(
        publish=_read_rates(fields, "publish") if "publish" in fields else None,
        dispatch=_read_rates(fields, "dispatch") if "dispatch" in fields else None,
        dispatch_period_s=_check_period(
            _integer(fields.get("dispatch_period_s", 1), "dispatch_period_s")
        ),
        dispatch_relative=_flag(fields, "dispatch_relative"),
    )


def _read_backlog(fields: dict[str, object]) -> BacklogQuotas:
    return BacklogQuotas(_read_quota(fields, "size"), _read_quota(fields, "age"))


def _read_quota(fields: dict[str, object], name: str) -> BacklogQuota | None:
    """The quota of one type; absent is not set there."""
    if name not in fields:
        return None
    said = _fields(fields[name], name, _QUOTA_FIELDS)
    action = _read_choice(said, "action", BacklogAction)
    if action is None:
        raise Malformed(Reason.MISSING, f"{name}: action is missing")
    size_bytes = _integer(said.get("size_bytes", _NO_QUOTA.size_bytes), "size_bytes")
    age_s = _integer(said.get("age_s", _NO_QUOTA.age_s), "age_s")
    return BacklogQuota(
        _check_between(size_bytes, _SIZE_BYTES, "size_bytes"),
        _check_between(age_s, _AGE_S, "age_s"),
        action,
    )


def _read_rates(fields: dict[str, object], kind: str) -> Rates:
    if kind not in fields:
        return UNLIMITED
    rates = _fields(fields[kind], kind, ("messages", "bytes"))
    return Rates(_read_rate(rates, "messages"), _read_rate(rates, "bytes"))


def _read_rate(rates: dict[str, object], dimension: str) -> Rate:
    """A rate in units per second; absent is unlimited."""
    if dimension not in rates:
        return None
    value = rates[dimension]
    if isinstance(value, Decimal):
        return _check_rate(int(value * MILLI))
    return _check_rate(_integer(value, dimension) * MILLI)


def _read_choice(fields: dict[str, object], name: str, choices: type[_Choice]) -> _Choice | None:
    """One of a few words; absent is the daemon's default."""
    if name not in fields:
        return None
    try:
        return choices(_text(fields[name], name))
    except ValueError as exc:
        known = ", ".join(choices)
        raise Malformed(Reason.BAD_NAME, f"{name}: expected one of {known}") from exc


def _check_revision(revision: int) -> int:
    return _check_between(revision, (0, REVISION_MAX), "revision")


def _check_rate(rate: Milli) -> Milli:
    if not 0 < rate <= _RATE_MAX:
        raise Malformed(Reason.BAD_NUMBER, f"rate: expected above 0, at most {QUOTA_MAX}")
    return rate


def _check_period(period_s: int) -> int:
    return _check_between(period_s, (1, PERIOD_S_MAX), "dispatch_period_s")


def _check_between(value: int, bounds: tuple[int, int], what: str) -> int:
    low, high = bounds
    if not low <= value <= high:
        raise Malformed(Reason.BAD_NUMBER, f"{what}: expected {low} to {high}")
    return value


def _fields(value: object, what: str, known: Collection[str]) -> dict[str, object]:
    if not isinstance(value, dict):
        raise Malformed(Reason.BAD_STRUCTURE, f"{what}: expected an object")
    if not value.keys() <= set(known):
        raise Malformed(Reason.BAD_STRUCTURE, f"{what}: expected only {', '.join(known)}")
    return value


def _flag(fields: dict[str, object], name: str) -> bool:
    value = fields.get(name, False)
    if not isinstance(value, bool):
        raise Malformed(Reason.BAD_STRUCTURE, f"{name}: expected true or false")
    return value


def _integer(value: object, what: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(Reason.BAD_STRUCTURE, f"{what}: expected a whole number")
    return value


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise Malformed(Reason.BAD_STRUCTURE, f"{what}: expected a text")
    return value
