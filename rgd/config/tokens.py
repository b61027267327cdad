"""The tokens file: callers' tokens and their scopes.

Law: a token is stored as its SHA-256 only, and no fault ever shows one. A file that every user of the
machine may read is refused.

The file is a YAML list of `{name, token or token_sha256, scopes}`. `rgd.adapters.http` reads a caller's
token; `rgd.app` decides when the file is read again.
"""

import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rgd.config.document import read_document
from rgd.config.faults import KeyPath, shown
from rgd.core.errors import InvalidName
from rgd.core.policies.names import check_entity
from rgd.errors import ConfigError, Fault
from rgd.ports.door import TOKENS_MAX, Scope, digest_of

_KEYS: Final = ("name", "token", "token_sha256", "scopes")
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}")

#: Shorter tokens can be guessed; longer ones do not fit a header line.
TOKEN_CHARS_MIN: Final = 8
TOKEN_CHARS_MAX: Final = 4096
#: RFC 6750's b64token: characters that a header does not change.
_TOKEN: Final = re.compile(r"[-A-Za-z0-9._~+/]+=*")


@dataclass(frozen=True, slots=True)
class Grant:
    """The rights of one token."""

    #: The name of its owner, for logs.
    name: str
    scopes: frozenset[Scope]


def load_tokens(path: Path) -> Mapping[bytes, Grant]:
    """Read a tokens file: grants by the token's digest (`rgd.ports.door.digest_of`).

    Raises:
        ConfigError: it cannot be used; carries every fault.
    """
    _check_mode(path)
    document = read_document(path)
    grants: dict[bytes, Grant] = {}
    if not isinstance(document.value, list) or not document.value:
        expected = "expected a list of {name, token or token_sha256, scopes}"
        document.faults.add("", f"{expected}, got {_shown_kind(document.value)}")
    elif len(document.value) > TOKENS_MAX:
        document.faults.add("", f"expected at most {TOKENS_MAX}, got {len(document.value)}")
    else:
        for index, entry in enumerate(document.value):
            _take(entry, KeyPath(document.faults, str(index)), grants=grants)
    document.faults.raise_if_any()
    return grants


def _shown_kind(value: object) -> str:
    """The kind of a value without its content, which may be a secret."""
    return shown(value) if value is None or isinstance(value, dict) else f"a {type(value).__name__}"


def _check_mode(path: Path) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return  # `read_document` reports the error.
    if mode & (stat.S_IROTH | stat.S_IWOTH):
        expected = f"expected a file closed to others, got mode {mode:04o}; chmod o-rwx it"
        raise ConfigError(Fault(str(path), "", expected))


def _take(entry: object, at: KeyPath, *, grants: dict[bytes, Grant]) -> None:
    if not isinstance(entry, dict):
        at.wrong(f"expected {{name, token or token_sha256, scopes}}, got {_shown_kind(entry)}")
        return
    at.check_keys(entry, _KEYS)
    name = _name(entry.get("name"), at.below("name"))
    digest = _digest(entry, at)
    scopes = _scopes(entry.get("scopes"), at.below("scopes"))
    if digest in grants:
        at.wrong(f"expected another token than that of {grants[digest].name!r}")
    elif any(grant.name == name for grant in grants.values()):
        at.below("name").wrong(f"expected a name that no other token has, got {shown(name)}")
    else:
        grants[digest] = Grant(name, scopes)


def _name(value: object, at: KeyPath) -> str:
    if isinstance(value, str):
        try:
            return check_entity(value, "name")
        except InvalidName as exc:
            at.wrong(str(exc).partition(": ")[2])
    else:
        at.wrong(f"expected the name of the token's owner, got {shown(value)}")
    return at.key  # Unique, so that it does not make a second fault.


def _digest(entry: dict[str, object], at: KeyPath) -> bytes:
    if ("token" in entry) == ("token_sha256" in entry):
        at.wrong("expected token or token_sha256, one of them")
    elif "token" in entry:
        token = entry["token"]
        if (
            isinstance(token, str)
            and TOKEN_CHARS_MIN <= len(token) <= TOKEN_CHARS_MAX
            and _TOKEN.fullmatch(token)
        ):
            return digest_of(token)
        at.below("token").wrong(
            f"expected {TOKEN_CHARS_MIN} to {TOKEN_CHARS_MAX} letters, digits or any of - . _ ~ + / "
            "and = at the end (digits alone in quotes)"
        )
    else:
        digest = entry["token_sha256"]
        if isinstance(digest, str) and _SHA256.fullmatch(digest):
            return bytes.fromhex(digest)
        at.below("token_sha256").wrong("expected the SHA-256 of the token, 64 hexadecimal digits")
    return at.key.encode()  # Unique, so that it does not make a second fault.


def _scopes(value: object, at: KeyPath) -> frozenset[Scope]:
    known = [scope.value for scope in Scope]
    if not isinstance(value, list) or not value:
        at.wrong(f"expected a list of scopes among {', '.join(known)}, got {shown(value)}")
        return frozenset()
    for item in value:
        if item not in known:
            hint = at.faults.meant(item, known) if isinstance(item, str) else ""
            at.wrong(f"expected scopes among {', '.join(known)}, got {shown(item)}{hint}")
    return frozenset(Scope(item) for item in value if item in known)
