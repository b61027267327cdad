"""The broker: the one door through which the state of a member changes.

`events` may happen to it, `effects` are what it asks the world to do, and
`Broker.handle` in `broker` turns one into the other.
"""
