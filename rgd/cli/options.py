"""Options that several commands share, as a dataclass whose fields are the options."""

import functools
import inspect
from collections.abc import Callable


def taking(options: type, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A decorator of commands: adds the options of a dataclass, and passes an object of it on under a name."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        shared = inspect.signature(options, eval_str=True).parameters

        @functools.wraps(command)
        def taken(**given: object) -> None:
            of_shared = {option: given.pop(option) for option in shared}
            command(**given, **{name: options(**of_shared)})

        own = inspect.signature(command, eval_str=True).parameters.values()
        parameters = [
            *(one for one in own if one.name != name),
            *(one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shared.values()),
        ]
        taken.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        return taken

    return decorate
