"""The gate: what answers requests, as the plane calls it.

`port` is all that the plane may call, in one process or from another one; `local` fulfils it by plain calls;
`looks` are the readings that are taken where the buckets are. Nothing here knows the plane.
"""
