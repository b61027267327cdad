"""The tokens file: what a sound one grants, and that it must be closed to others.

Mistakes are in test_bad_config; how a caller's token is compared is the HTTP adapter's business.
"""

import hashlib
from pathlib import Path

import pytest

from rgd.config.tokens import Grant, load_tokens
from rgd.errors import ConfigError
from rgd.ports.door import TOKENS_MAX, Scope, digest_of


def write(tmp_path: Path, text: str, mode: int = 0o600) -> Path:
    path = tmp_path / "tokens.yaml"
    path.write_text(text)
    path.chmod(mode)
    return path


def test_grants_are_found_by_the_digest_of_their_token(tmp_path: Path) -> None:
    digest = hashlib.sha256(b"another-secret").digest()
    text = f"""
- {{name: gateway, token: secret-gateway, scopes: [query]}}
- {{name: grafana, token_sha256: {digest.hex().upper()}, scopes: [read, query]}}
- {{name: ops, token: "12345678", scopes: [admin]}}
"""
    assert load_tokens(write(tmp_path, text)) == {
        digest_of("secret-gateway"): Grant("gateway", frozenset({Scope.QUERY})),
        digest: Grant("grafana", frozenset({Scope.READ, Scope.QUERY})),
        digest_of("12345678"): Grant("ops", frozenset({Scope.ADMIN})),
    }


@pytest.mark.parametrize("mode", [0o400, 0o600, 0o440, 0o640])
def test_a_file_closed_to_others_is_read(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path, "- {name: a, token: secret-a, scopes: [query]}", mode)
    assert len(load_tokens(path)) == 1


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o602, 0o666])
def test_a_file_open_to_others_is_refused(tmp_path: Path, mode: int) -> None:
    path = write(tmp_path, "- {name: a, token: secret-a, scopes: [query]}", mode)
    with pytest.raises(
        ConfigError, match=rf"closed to others, got mode {mode:04o}; chmod o-rwx it"
    ):
        load_tokens(path)


def test_a_missing_file_is_one_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected a readable file: No such file or directory"):
        load_tokens(tmp_path / "tokens.yaml")


def test_more_tokens_than_the_limit_are_refused(tmp_path: Path) -> None:
    lines = [
        f"- {{name: n{number}, token: secret-{number}, scopes: [query]}}"
        for number in range(TOKENS_MAX + 1)
    ]
    assert len(load_tokens(write(tmp_path, "\n".join(lines[:-1])))) == TOKENS_MAX
    with pytest.raises(ConfigError, match=f"expected at most {TOKENS_MAX}, got {TOKENS_MAX + 1}"):
        load_tokens(write(tmp_path, "\n".join(lines)))
