"""The pure core of rgd: buckets, policies, demand, shares and the exchange.

Nothing in here reads a clock, a socket, a file or a random source. The daemon, the
simulator and the Spark replay all run this same code; time, randomness and external
state are arguments. One package for each term: `policies`
(groups, attachments, limits), `buckets` (the fast path of a request), `leases` (tokens taken
in advance), `demand` (what callers wanted), `shares` (the part of each broker), `backlog` (what
subscriptions have not acknowledged), `exchange` (the messages between brokers), `stock` (Pulsar
brokers that know nothing of rgd) and `broker` (the only interface through which state changes).
"""
