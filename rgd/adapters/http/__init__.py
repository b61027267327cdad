"""The HTTP server: requests, policies and reads come in, answers, views and metrics go out.

`server` listens. A connection's bytes become requests on one of two paths: `fast_lane` for hot calls,
`dispatch` (aiohttp) for all others. Both lead through one `gate` (token, count, errors) and one `guard`
of each connection. `routes` is the list of all calls; their handlers (`acquire`, `leases`, `groups`,
`pulsar_admin`, `probes`, ...) know nothing of aiohttp. `bodies` and `strict` say what a body may hold;
`errors` has the one table from an error to its status; `openapi` describes all of it. It talks to
nothing but `rgd.ports`.
"""
