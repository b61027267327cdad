"""Leases: tokens that a caller takes in advance and spends by itself.

`model` has the requests and answers, `table` every live lease and its expiry, `sizing` how much a
lease may have, `leases` the calls.
"""
