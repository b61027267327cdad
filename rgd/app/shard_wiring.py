"""Makes the exchange of a shard from the settings."""

from typing import Final

from rgd.adapters.exchange.inbox import WAITING_BYTES_MAX
from rgd.adapters.exchange.pulsar import Prepare, PulsarExchange
from rgd.app.access import pulsar_settings
from rgd.config.settings import Settings
from rgd.core.exchange.shards import Shard

#: Least room for waiting messages of one shard, in bytes: some of the largest ones.
SHARD_BYTES_MIN: Final = 4 << 20


def topic_of(topic: str, shard: Shard) -> str:
    """The name of a shard's topic."""
    return f"{topic}-shard-{shard.number}-of-{shard.of}"


def shard_exchange(
    settings: Settings, url: str, prepare: Prepare | None, shard: Shard
) -> PulsarExchange:
    """The exchange of a shard; all shards share the room for waiting messages."""
    return PulsarExchange(
        url,
        topic_of(settings.exchange.topic, shard),
        settings=pulsar_settings(settings.exchange),
        queue_bytes_max=max(SHARD_BYTES_MIN, WAITING_BYTES_MAX // shard.of),
        prepare=prepare,
        is_prepared=True,
    )
