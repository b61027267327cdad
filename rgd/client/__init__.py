"""Asks a daemon on behalf of a program: `Client` for asyncio, `BlockingClient` for threads.

Laws: a caller never waits longer than he said; he is never granted more than the daemon granted,
unless the daemon is away and he asked for that (`when_away="open"`); every queue is bounded.

    answers    what is asked and answered        tickets    a question that waits
    core       the logic, without I/O            leases     when they are taken, renewed, given back
    hold       the tokens at hand                link       up or away
    pump       runs the core on an event loop    transport  HTTP
    client     for asyncio                       blocking   for threads
    asgi, wsgi, web, fastapi  middleware         producer   a Pulsar producer that asks

It knows nothing of the daemon's own parts. docs/client.md is for those who use it.
"""

from rgd.client.answers import Answer, Name, Question, Source
from rgd.client.blocking import BlockingClient, BlockingLimiter
from rgd.client.client import Client, Limiter
from rgd.client.core import Counts
from rgd.client.errors import BadSetting, ClientClosed, QuestionRefused
from rgd.client.settings import ClientSettings, WhenAway

__all__ = [
    "Answer",
    "BadSetting",
    "BlockingClient",
    "BlockingLimiter",
    "Client",
    "ClientClosed",
    "ClientSettings",
    "Counts",
    "Limiter",
    "Name",
    "Question",
    "QuestionRefused",
    "Source",
    "WhenAway",
]
