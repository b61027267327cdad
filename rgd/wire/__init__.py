"""Bytes <-> values, and nothing else: no clock, no file, no socket.

Three foreign formats and two of our own, a module each: `frame` (PIP-70 entries as Pulsar stores
them), `segment` (files of entries), `pulsar_usage` (messages of stock brokers), `codec`
(messages of rgd daemons), `record` (a round in the usage log). The last two share `columns`,
and `policies` encodes policies as JSON. The `*_pb2` modules are generated from
`proto/` and imported only here, so protobuf objects never become domain values.

Law: for any bytes a decoder returns a value or raises a `WireError`, and never exceeds its named
limits of work and memory.
"""
