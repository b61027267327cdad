"""Answers that several calls may give, in the same words."""

from typing import Final

from rgd.adapters.http.answers import AcquireAnswer, Reason, UnknownAnswer
from rgd.adapters.http.endpoint import ResponseSpec
from rgd.adapters.http.shadow import HEADER

#: Of a refusal: always the first, the others where the limit that refused has a rate.
REFUSAL_HEADERS: Final = (
    "Retry-After",
    "RateLimit",
    "RateLimit-Policy",
    "RateLimit-Limit",
    "RateLimit-Remaining",
    "RateLimit-Reset",
)
#: What a grant may say beside its body.
GRANT_HEADERS: Final = (HEADER, "X-Rgd-Over")
#: What may be answered wherever tokens are taken.
TAKING: Final = {
    403: ResponseSpec(
        Reason, "The token lacks the scope; or no limit applies and http.ungoverned is deny."
    ),
    429: ResponseSpec(
        AcquireAnswer,
        "Refused for now; by a backlog quota only with Retry-After.",
        headers=REFUSAL_HEADERS[:1],
        headers_if_any=REFUSAL_HEADERS[1:],
    ),
    503: ResponseSpec(
        UnknownAnswer | Reason,
        "No policies are known yet; or too many connections, leases, or too much in work.",
        headers_if_any=("Retry-After",),
    ),
}
