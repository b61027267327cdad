"""The exchange and the policies table, on Apache Pulsar or on an embedded broker.

pulsar-client is imported only here, and its errors are converted here. One behaviour suite, tests/contract/exchange, tests
both, and the bus of one process that tests use (tests/support/memory_bus.py).
"""
