"""An example of each command, shown at the end of its help; a test takes each one apart as a shell would.

A new command gets a line here.
"""

from typing import Any, Final

EXAMPLES: Final = {
    "": "rgd serve --broker one --groups groups.yaml",
    "serve": "rgd serve --broker broker-1 --exchange pulsar://pulsar:6650 --groups groups.yaml",
    "validate": "rgd validate rgd.yaml groups.yaml",
    "shares": "rgd shares --policy max-min --quota 120 --wanted 1000 50 10",
    "why": "rgd why acme/orders/eu --kind dispatch --subscription billing",
    "top": "rgd top --once --json",
    "probe": "rgd probe --ready --url unix:///run/rgd.sock",
    "doctor": "rgd doctor --config rgd.yaml --broker broker-1",
    "report": "rgd report rgd-log --out report --group gold --top 20",
    "demo": "rgd demo --out demo-out --no-report",
    "groups": "rgd groups list",
    "groups list": "rgd groups list --url https://broker-1:7700 --tls-ca ca.pem --token-file token",
    "groups get": "rgd groups get gold --json",
    "groups set": "rgd groups set gold --publish-messages 500 --publish-bytes 5M",
    "groups delete": "rgd groups delete gold silver",
    "groups attach": "rgd groups attach gold acme acme/orders acme/orders/eu",
    "groups detach": "rgd groups detach acme/orders",
    "log": "rgd log cat rgd-log",
    "log cat": "rgd log cat --json rgd-log/broker-1",
    "log ls": "rgd log ls rgd-log s3://bucket/logs",
    "log seek": "rgd log seek rgd-log/broker-1 --time 2026-11-24T12:00:00Z",
    "log verify": "rgd log verify rgd-log",
    "log upload": "rgd log upload rgd-log/broker-1 s3://bucket/logs",
    "log convert": "rgd log convert rgd-log --out lake",
    "log cursors": "rgd log cursors --json",
    "log ack": "rgd log ack nightly 1200",
    "log forget": "rgd log forget nightly",
}


def add_examples(command: Any, path: str = "") -> None:
    """Add their examples to a command of typer's, and to those below it."""
    if path in EXAMPLES:
        # \b: not to be filled up into one paragraph.
        command.epilog = f"\b\nExample:\n  {EXAMPLES[path]}"
    for name, below in getattr(command, "commands", {}).items():
        add_examples(below, f"{path} {name}".strip())
