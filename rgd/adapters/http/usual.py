"""Answers that several calls of `routes` may give, in the same words."""

from typing import Final

from rgd.adapters.http.answers import Reason
from rgd.adapters.http.endpoint import ResponseSpec

#: Of a refusal: always the first, the others where the limit that refused has a rate.
REFUSAL_HEADERS: Final = (
    "Retry-After",
    "RateLimit",
    "RateLimit-Policy",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
)
DONE: Final = {204: ResponseSpec("Done and in force here.")}
BAD_NAME: Final = {400: ResponseSpec("The name is malformed.", Reason)}
BAD_BODY: Final = {
    400: ResponseSpec("The name or the body is malformed; the field is named.", Reason)
}
BAD_PAGE: Final = {400: ResponseSpec("A parameter is malformed or unknown; it is named.", Reason)}
NO_GROUP: Final = {404: ResponseSpec("There is no such group.", Reason)}
#: Whoever changes policies may meet these.
NOT_NOW: Final = {
    409: ResponseSpec("Something else owns the policies (a file, a stock Pulsar).", Reason),
    503: ResponseSpec("The policies table cannot be written now.", Reason),
}
#: Whoever deletes a group, in place of the 409 of `NOT_NOW`.
IN_USE: Final = {
    409: ResponseSpec(
        "Something is attached to the group; or something else owns the policies (a file, a stock Pulsar).",
        Reason,
    )
}
