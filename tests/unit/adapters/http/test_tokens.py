"""Tokens and scopes. Not covered: the file they come from, and the headers they are sent in."""

import pytest

from rgd.adapters.http.tokens import Tokens
from rgd.errors import ConfigError
from rgd.ports.door import TOKENS_MAX, Scope, digest_of

SECRET = "s3cret-token"
READ = frozenset({Scope.READ})


def tokens_of(scopes_by_token: dict[str, frozenset[Scope]]) -> Tokens:
    return Tokens({digest_of(token): scopes for token, scopes in scopes_by_token.items()})


def test_there_may_be_so_many_tokens_and_not_one_more() -> None:
    most = {f"token-{number}": READ for number in range(TOKENS_MAX)}
    assert len(tokens_of(most)) == TOKENS_MAX

    with pytest.raises(ConfigError, match=f"at most {TOKENS_MAX} tokens"):
        tokens_of({**most, "one-more": READ})


def test_tokens_do_not_show_themselves() -> None:
    tokens = tokens_of({SECRET: READ})

    assert repr(tokens) == str(tokens) == "<Tokens: 1>"
