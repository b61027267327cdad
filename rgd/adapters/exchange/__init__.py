"""The exchange and the policies table: in memory, on Apache Pulsar, on an embedded broker.

pulsar-client is imported only here, and its errors are converted here. `memory` does not import it.
One behaviour suite, tests/contract/exchange, tests all adapters.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rgd.adapters.exchange.memory import MemoryExchange, MemoryPolicyStore
    from rgd.adapters.exchange.pulsar import PulsarExchange
    from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
    from rgd.ports.exchange import Exchange, PolicyStore

    # The type checker holds every adapter against its port here.
    EXCHANGES: tuple[type[Exchange], ...] = (MemoryExchange, PulsarExchange)
    POLICY_STORES: tuple[type[PolicyStore], ...] = (MemoryPolicyStore, PulsarPolicyStore)
