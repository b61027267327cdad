"""The HTTP server: requests, policies and reads come in, answers, views and metrics go out.

`front` listens. A `connection` is a `fast_lane.Lane`: it reads requests (`lane_heads`, `chunks`), lets them pass the `gate`
(token, count, errors) within its limits (`guard`), and answers the calls of `hot` itself. What it passes on (`forward`)
is answered by `plane`, behind a socket (`relay`, `relay_plane`), which has
the list of all calls; their handlers (`acquire`, `leases`, `groups`, `pulsar_admin`, `probes`, ...) know nothing of
connections, and an `endpoint.Endpoint` above each says which call it answers. `bodies` and `strict` say what a body may hold; `errors`
gives an error its status; `openapi` describes all of it. It talks to nothing but `rgd.ports`.
"""
