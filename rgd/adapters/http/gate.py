"""What holds for every request: its token, its count, the text of its error.

Law: connections (`fast_lane`) authorise, drain, count and answer errors here and nowhere else.
"""

from collections.abc import Callable
from typing import Final

from rgd.adapters.http.errors import CallError, Unauthorised, reply_to
from rgd.adapters.http.reply import Observer, Reply
from rgd.adapters.http.tokens import Tokens, bearer_of
from rgd.ports.door import Scope

#: What the observer receives where no path matched: its labels must stay few.
OTHER_ROUTE: Final = "other"


class Gate:
    """The gate that every request leads through.

    Args:
        tokens: those in force; they may be replaced at any time.
        observe: told of every answer.
        clock: seconds, monotonic.
    """

    def __init__(self, tokens: Tokens, observe: Observer, clock: Callable[[], float]) -> None:
        self.tokens = tokens
        self.observe = observe
        self.clock = clock
        #: Set when the daemon is about to stop: every answer sends its client elsewhere.
        self.draining = False
        #: Calls answered 401 or 403, by what their token lacks.
        self.unauthorised = {"no_token": 0, "unknown_token": 0, "scope": 0}

    def authorise(self, scope: Scope | None, authorization: str, foreign: str = "") -> None:
        """Let a call pass, or not.

        Args:
            scope: that the call needs; None: no token.
            authorization: the header, empty where there is none.
            foreign: why it may be another site's page that asks, which has no token but reaches whom its browser reaches.

        Raises:
            CallError
        """
        if scope is None:
            return
        if not self.tokens:
            if foreign:
                raise CallError(403, foreign)
            return
        token = bearer_of(authorization)
        if token is None:
            expected = "expected a bearer token: Authorization: Bearer TOKEN"
            raise Unauthorised(401, "no_token", expected)
        scopes = self.tokens.scopes_of(token)
        if scopes is None:
            reason = "the bearer token is not known"
            raise Unauthorised(401, "unknown_token", reason, ', error="invalid_token"')
        if scope not in scopes:
            reason = f"this call needs a token with the scope {scope}"
            challenge = f', error="insufficient_scope", scope="{scope}"'
            raise Unauthorised(403, "scope", reason, challenge)

    def caller(self, authorization: str) -> str:
        """The name of a token that passed; empty where none is needed."""
        token = bearer_of(authorization)
        return "" if token is None else self.tokens.name_of(token)

    def lets(self, scope: Scope | None, authorization: str) -> bool:
        """Whether `authorise` would let a call pass."""
        try:
            self.authorise(scope, authorization)
        except CallError:
            return False
        return True

    def reply_to(self, error: Exception, method: str, route: str) -> Reply:
        """The answer to an error of a call, as `errors.reply_to`."""
        if isinstance(error, Unauthorised):
            self.unauthorised[error.why] += 1
        return reply_to(error, method, route)
