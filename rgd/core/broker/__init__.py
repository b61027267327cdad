"""The broker: the state of one member of the exchange, and the only code that changes it.

`Broker.handle` in `broker` takes one event (`events`) and returns effects (`effects`) for its
caller to carry out. The other modules hold parts of the state: the live peers (`membership`),
whether to use what they sent (`exchange_state`), whether this broker's own messages come back
(`link`), the shares that it may grant (`sharing`), and what it reports each round (`rounds`).
"""
