"""Tokens and scopes. Not covered: the file they come from, and the headers they are sent in."""

import hashlib

import pytest

from rgd.adapters.http.tokens import TOKENS_MAX, Scope, Tokens
from rgd.errors import ConfigError

SECRET = "s3cret-token"


def test_a_token_has_the_scopes_it_was_given() -> None:
    tokens = Tokens.from_plain({SECRET: ["query"], "other": ["query", "read"]})

    assert tokens.scopes_of(SECRET) == frozenset({Scope.QUERY})
    assert tokens.scopes_of("other") == frozenset({Scope.QUERY, Scope.READ})


def test_admin_may_do_everything() -> None:
    assert Tokens.from_plain({SECRET: ["admin"]}).scopes_of(SECRET) == frozenset(Scope)


@pytest.mark.parametrize(
    "token", ["", SECRET[:-1], SECRET + "x", SECRET.upper(), "\udcff", "ä", "x" * 100_000]
)
def test_another_token_is_unknown(token: str) -> None:
    assert Tokens.from_plain({SECRET: ["admin"]}).scopes_of(token) is None


def test_digests_are_taken_as_they_are() -> None:
    digest = hashlib.sha256(SECRET.encode()).digest()

    assert Tokens({digest: frozenset({Scope.READ})}).scopes_of(SECRET) == frozenset({Scope.READ})


def test_every_faulty_token_is_named_by_its_place_and_never_by_its_text() -> None:
    with pytest.raises(ConfigError) as caught:
        Tokens.from_plain(
            {
                "two words": ["read"],
                SECRET: ["write", "read"],
                "no-scope": [],
                "": ["read"],
            }
        )

    faults = [(fault.key, fault.expected) for fault in caught.value.faults]
    assert faults == [
        ("token 1", "expected letters, digits or any of - . _ ~ + / with = at the end"),
        ("token 2", "expected scopes among query, read, admin, got 'write'"),
        ("token 3", "expected scopes among query, read, admin, got nothing"),
        ("token 4", "expected letters, digits or any of - . _ ~ + / with = at the end"),
    ]
    assert SECRET not in str(caught.value)
    assert "two words" not in str(caught.value)


def test_there_may_be_so_many_tokens_and_not_one_more() -> None:
    most = {f"token-{number}": ["read"] for number in range(TOKENS_MAX)}
    assert len(Tokens.from_plain(most)) == TOKENS_MAX

    with pytest.raises(ConfigError, match=f"at most {TOKENS_MAX} tokens"):
        Tokens.from_plain({**most, "one-more": ["read"]})


def test_tokens_do_not_show_themselves() -> None:
    tokens = Tokens.from_plain({SECRET: ["read"]})

    assert repr(tokens) == str(tokens) == "<Tokens: 1>"


def test_no_tokens_are_false() -> None:
    assert not Tokens()
    assert Tokens.from_plain({SECRET: ["read"]})
