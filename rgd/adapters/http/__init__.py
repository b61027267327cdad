"""The HTTP door: questions and policies come in, answers, views and metrics go out.

`server` listens and carries each request through one road: route, token, body,
handler, answer, count. `routes` is the list of all calls; `acquire`, `groups`,
`pulsar_admin` and `probes` answer them without knowing aiohttp; `bodies` and
`strict` say what a body may hold; `errors` has the one table from an error to
its status; `openapi` tells the whole of it to machines. Only this package
imports aiohttp and msgspec, and it talks to nothing but `rgd.ports.daemon`.
"""
