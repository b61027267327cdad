"""`rgd probe`: whether a daemon is alive, or ready; for health checks that run a command.

Law: exit code 0 means yes, 1 no, in at most the time of one call.
"""

from typing import Annotated

import typer

from rgd.cli.asking import Door, asks
from rgd.errors import RgdError
from rgd.text import printable


@asks
def probe(
    *,
    ready: Annotated[
        bool, typer.Option("--ready", help="Whether traffic should go there, not only alive.")
    ] = False,
    door: Door,
) -> None:
    """Ask whether a daemon is alive, or ready. The exit code is 0 for yes, 1 for no."""
    if not ready:
        door.ask(lambda client: client.health())
        print("alive")
        return
    view = door.ask(lambda client: client.readiness())
    if not view["ready"]:
        raise RgdError(f"not ready: {view['reason']}")
    print(printable("; ".join(["ready", *view.get("degraded", [])])))
