"""The pure inside of rgd: buckets, policies, demand, shares and the exchange.

Nothing in here reads a clock, a socket, a file or a dice; the daemon, the
simulator and the Spark replay all run this same code (time, chance and the
world are arguments). One folder for each word of the design: `policies`
(groups, attachments, limits), `buckets` (the short road of a request),
`demand` (what was wanted), `shares` (who gets how much), `exchange` (what the
brokers tell one another) and `broker` (the one door through which state changes).
"""
