"""Bytes <-> values, and nothing else: no clock, no file, no socket.

Three foreign formats and two of our own, a module each: `frame` (PIP-70 entries as Pulsar stores
them), `segment` (files of entries), `pulsar_usage` (what stock brokers tell one another), `codec`
(what rgd daemons tell one another), `record` (a round in the usage log); `columns` is what the last
two share, and `policies` writes policies down as JSON. The `*_pb2` modules are generated from
`proto/` and imported in here only, so protobuf objects never become domain values.

Law: whatever the bytes are, a decoder answers with a value or raises a `WireError`, and does neither
more work nor takes more memory than its named limits allow.
"""
