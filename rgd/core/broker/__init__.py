"""The broker: the one door through which the state of a member changes.

`events` may happen to it, `effects` are what it asks the world to do, and
`Broker.handle` in `broker` turns one into the other. Behind the door: who is
there (`membership`), how far to believe them (`exchange_state`), whether our own words
come back (`link`), what this broker may grant (`sharing`), and what it says of
itself each round (`rounds`).
"""
