"""Bytes <-> values, and nothing else: no clock, no file, no socket.

Pulsar's formats: `frame` (PIP-70 entries as Pulsar stores them), `pulsar_usage` (messages of stock
brokers), `pulsar_commands` and `pulsar_delivery` (what a broker sends a reader). Our own: `codec`
(messages of rgd daemons), `segment` (files of entries), `log_records` and `record` (what is logged),
`policies` (JSON). Reports and records share `columns`. The `*_pb2` modules are generated from
`proto/` and imported only here, so protobuf objects never become domain values.

Law: for any bytes a decoder returns a value or raises a `WireError`, and never exceeds its named
limits of work and memory.
"""
