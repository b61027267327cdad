"""Each command of a runbook runs, as it is printed, against a daemon that has tokens and a log."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import components
from tests.support.served import served
from tests.tidy import tree

pytestmark = [pytest.mark.e2e, pytest.mark.embedded]

TOKEN = "a-token-of-tests"
#: What a reader fills in.
FILLED = {"TENANT/NAMESPACE": "acme/orders"}
GROUPS = "groups: {gold: {publish: {messages: 100}}}\nattach: {namespaces: {acme/orders: gold}}\n"


def commands() -> list[str]:
    """The commands of all sections, each once."""
    found = re.findall(r"^\d\. `([^`]+)`", tree.text("docs/runbooks.md"), re.MULTILINE)
    return sorted(set(found))


def test_every_command_runs(tmp_path: Path) -> None:
    components.embedded_broker()
    tokens, token = tmp_path / "tokens.yaml", tmp_path / "token"
    tokens.write_text(f"- {{name: sre, token: {TOKEN}, scopes: [read, admin]}}\n")
    token.write_text(TOKEN)
    for file in (tokens, token):
        file.chmod(0o600)
    (defined,) = re.findall(r"`metrics` is short for\s+`([^`]+)`", tree.text("docs/runbooks.md"))
    failed = []
    with served(tmp_path, GROUPS, HTTP__TOKENS_FILE=str(tokens)) as url:
        env = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RGD_URL": url,
            "RGD_TOKEN_FILE": str(token),
            "DAEMON_LOG": str(tmp_path / "serve.log"),
        }
        for command in commands():
            words = command
            for name, value in FILLED.items():
                words = words.replace(name, value)
            # A pattern that finds nothing is an answer.
            script = f"set -o pipefail; metrics() {{ {defined}; }}; {words}"
            shell = ["bash", "-c", script]
            while True:
                done = subprocess.run(shell, env=env, capture_output=True, text=True, check=False)
                if "no answer within" not in done.stdout:
                    break  # the doctor waits for no busy machine
            if done.returncode != 0 and not ("grep" in command and done.stderr == ""):
                failed.append((command, done.returncode, done.stdout + done.stderr))
    assert failed == []
