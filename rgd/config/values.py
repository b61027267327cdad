"""The types of settings: each has its unit and a text of what it expects.

Law: the expectation in a fault and the allowed values in docs/configuration.md are the same
text, generated here from the same type and bounds.

Numbers refuse `true` (pydantic would read 1). Sizes are bytes or text such as `64 MiB`. Addresses
are stored as text, with functions that parse them. `settings` assigns the types.
"""

import ipaddress
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from importlib.metadata import entry_points
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict
from pydantic.fields import FieldInfo

from rgd.core.errors import InvalidName
from rgd.core.exchange.dialects import DialectName
from rgd.core.policies.names import check_entity, parse_topic
from rgd.ports.usagelog import Interceptor
from rgd.storage.objects import folder_of

_SIZE: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_SIZE_UNITS: Final = {
    "": 1, "B": 1,
    "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}  # fmt: skip
_HOST: Final = re.compile(r"[A-Za-z0-9_]([-A-Za-z0-9_.]*[A-Za-z0-9_])?")
_PORT_MAX: Final = 65535

EMBEDDED: Final = "embedded"

#: Where packages name interceptors of theirs (`rgd.ports.usagelog.BrokerEntryMetadataInterceptor`).
INTERCEPTOR_ENTRY_POINTS: Final = "rgd_interceptors"
#: Where Pulsar's interceptors are.
INTERCEPTOR_PACKAGE: Final = "org.apache.pulsar.common.intercept."


class Section(BaseModel):
    """A group of settings; below each stands what it does."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class Unit:
    """The unit of a number, for the documentation; names end in its short form."""

    name: str


@dataclass(frozen=True, slots=True)
class Expected:
    """The expectation of a text, as the end of the sentence "expected ..."."""

    words: str


def parse_size(text: str) -> int:
    """Bytes from text such as `64 MiB`, `1.5 GB` or `1024`.

    Raises:
        ValueError: it is not a size, or not a whole number of bytes.
    """
    match = _SIZE.fullmatch(text)
    factor = _SIZE_UNITS.get(match[2]) if match else None
    if match is None or factor is None:
        raise ValueError(text)
    size = float(match[1]) * factor if "." in match[1] else int(match[1]) * factor
    if size != int(size):
        raise ValueError(text)
    return int(size)


def show_size(size: int) -> str:
    """Bytes in the largest binary unit that divides them: `64 MiB`."""
    for unit in ("TiB", "GiB", "MiB", "KiB"):
        if size and size % _SIZE_UNITS[unit] == 0:
            return f"{size // _SIZE_UNITS[unit]} {unit}"
    return f"{size} bytes"


def split_address(address: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT`; IPv6 is in brackets (`[::1]:7700`), which the host does not have.

    Raises:
        ValueError: it is not an address, or the port is not from 0 to 65535.
    """
    host, colon, port = address.rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or int(port) > _PORT_MAX:
        raise ValueError(address)
    if host.startswith("[") and host.endswith("]"):
        return str(ipaddress.IPv6Address(host[1:-1])), int(port)
    if not _HOST.fullmatch(host):
        raise ValueError(address)
    return host, int(port)


def parse_interceptors(text: str) -> list[str]:
    """The interceptors that a list names, Pulsar's own by their bare class names.

    Others are an entry point of `INTERCEPTOR_ENTRY_POINTS`, or the dotted path of a class (`package.module.Class`).

    Raises:
        ValueError: a name without dots is neither Pulsar's nor an entry point.
    """
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    bare = [name.removeprefix(INTERCEPTOR_PACKAGE) for name in names]
    known = {*Interceptor, *entry_points(group=INTERCEPTOR_ENTRY_POINTS).names}
    if any(not name or ("." not in name and name not in known) for name in bare):
        raise ValueError(text)
    return bare


def parse_dialects(text: str) -> list[DialectName]:
    """The dialects that a list names.

    Raises:
        ValueError: there is none of that name, one comes twice, or `compact` is not among them.
    """
    names = [DialectName(name.strip()) for name in text.split(",")]
    if DialectName.COMPACT not in names or len(set(names)) != len(names):
        raise ValueError(text)
    return names


def expectation(field: FieldInfo) -> str:
    """The expectation of a setting, as text that follows "expected"."""
    words = next((item.words for item in _metadata(field) if isinstance(item, Expected)), None)
    if words is None:
        words = _expected_of_type(field)
    return f"{words}, or nothing" if is_optional(field) else words


def unit_of(field: FieldInfo) -> str:
    """A setting's unit, "" where it has none."""
    return next((item.name for item in _metadata(field) if isinstance(item, Unit)), "")


def is_optional(field: FieldInfo) -> bool:
    """Whether a setting may be left unset."""
    return NoneType in get_args(field.annotation)


def _expected_of_type(field: FieldInfo) -> str:
    kind: Any = _required_part(field)
    if issubclass(kind, StrEnum):
        return f"one of {', '.join(kind)}"
    if issubclass(kind, Path):
        return "a path"
    low, high = (
        next(getattr(item, bound) for item in _metadata(field) if hasattr(item, bound))
        for bound in ("ge", "le")
    )
    unit = unit_of(field)
    if unit == "bytes":
        return f"a size from {show_size(low)} to {show_size(high)}, as bytes or like `64 MiB`"
    noun = "a whole number" if kind is int else "a number"
    return f"{noun} from {low} to {high}" + (f" ({unit})" if unit else "")


def _required_part(field: FieldInfo) -> Any:
    """`X` of a setting that is `X` or `X | None`."""
    if not is_optional(field):
        return field.annotation
    return next(part for part in get_args(field.annotation) if part is not NoneType)


def _metadata(field: FieldInfo) -> tuple[object, ...]:
    """The metadata of `Annotated`; for an optional setting pydantic leaves it inside the union."""
    return (*field.metadata, *getattr(_required_part(field), "__metadata__", ()))


def _number(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(value)
    return value


def _size(value: object) -> object:
    return parse_size(value) if isinstance(value, str) else _number(value)


def _checked(check: Callable[[str], object]) -> AfterValidator:
    """A validator that keeps the text and calls `check`; the type's text replaces its error."""

    def validate(text: str) -> str:
        try:
            check(text)
        except InvalidName as exc:
            raise ValueError(text) from exc
        return text

    return AfterValidator(validate)


def _check_exchange_url(url: str) -> None:
    if url == EMBEDDED:
        return
    scheme, _, hosts = url.partition("://")
    if scheme not in {"pulsar", "pulsar+ssl"}:
        raise ValueError(url)
    for host in hosts.removesuffix("/").split(","):
        has_port = ":" in host.rpartition("]")[2]
        split_address(host if has_port else f"{host}:0")


def urls_of(text: str) -> tuple[str, ...]:
    """The URLs of `http://a:8080,b:8080`: the scheme is written once, as in Pulsar's own lists.

    Raises:
        ValueError: it is no such list.
    """
    scheme, _, hosts = text.partition("://")
    urls = tuple(f"{scheme}://{host.rstrip('/')}" for host in hosts.split(","))
    for url in urls:
        _check_http_url(url)
    if len(urls) > 1 and any(urlsplit(url).path for url in urls):
        raise ValueError(text)
    return urls


def _check_http_url(url: str) -> None:
    parts = urlsplit(url)
    # No password: tokens are in files; a URL is logged, and is written into files that others may read.
    if parts.scheme not in {"http", "https"} or not parts.hostname or set(url) & set("@?#"):
        raise ValueError(url)


def _joined(value: object) -> object:
    return ",".join(map(str, value)) if isinstance(value, list) else value


def is_log_name(name: str) -> bool:
    """Whether a name may be a log's, which is a folder of the tier."""
    try:
        check_entity(name, "name")
    except InvalidName:
        return False
    return name not in {".", ".."}


def _check_log_name(name: str) -> None:
    if not is_log_name(name):
        raise ValueError(name)


def _check_topic(domain: str) -> Callable[[str], None]:
    def check(topic: str) -> None:
        if not parse_topic(topic).startswith(f"{domain}://"):
            raise ValueError(topic)

    return check


Number = Annotated[float, BeforeValidator(_number)]
Count = Annotated[int, BeforeValidator(_number)]
Millis = Annotated[int, BeforeValidator(_number), Unit("ms")]
Seconds = Annotated[float, BeforeValidator(_number), Unit("s")]
WholeSeconds = Annotated[int, BeforeValidator(_number), Unit("s")]
Rounds = Annotated[int, BeforeValidator(_number), Unit("rounds")]
Size = Annotated[int, BeforeValidator(_size), Unit("bytes")]

InterceptorNames = Annotated[
    str,
    BeforeValidator(_joined),
    _checked(parse_interceptors),
    Expected(
        f"any of {' and '.join(Interceptor)}, of the entry points of {INTERCEPTOR_ENTRY_POINTS!r} and of dotted paths of "
        "classes, with commas between them, or an empty text"
    ),
]
DialectNames = Annotated[
    str,
    BeforeValidator(_joined),
    _checked(parse_dialects),
    Expected("`compact` (always), and `pulsar` beside stock brokers: [compact, pulsar]"),
]
Flag = Annotated[bool, Expected("true or false")]
TierUrl = Annotated[
    str, _checked(folder_of), Expected("a folder, file:///PATH or s3://BUCKET[/PREFIX]")
]
Name = Annotated[
    str,
    _checked(lambda name: check_entity(name, "name")),
    Expected("a name of letters, digits or any of - = : . _"),
]
LOG_NAME_EXPECTED: Final = "a name of letters, digits or any of - = : . _, other than . and .."
LogName = Annotated[str, _checked(_check_log_name), Expected(LOG_NAME_EXPECTED)]
Address = Annotated[
    str, _checked(split_address), Expected("HOST:PORT, such as 127.0.0.1:7700 or [::1]:7700")
]
ExchangeUrl = Annotated[
    str,
    _checked(_check_exchange_url),
    Expected(
        "`embedded`, pulsar://HOST:PORT or pulsar+ssl://HOST:PORT (several as HOST:PORT,HOST:PORT)"
    ),
]
HttpUrls = Annotated[
    str,
    _checked(urls_of),
    Expected("http://HOST:PORT or https://HOST:PORT (several as HOST:PORT,HOST:PORT)"),
]
UsageTopic = Annotated[
    str,
    _checked(_check_topic("non-persistent")),
    Expected("a topic, non-persistent://tenant/namespace/topic"),
]
TableTopic = Annotated[
    str,
    _checked(_check_topic("persistent")),
    Expected("a topic, persistent://tenant/namespace/topic"),
]
