"""A process that joins exchange and table, says and hears something, leaves and ends at once.

A program, run by test_leaving.py as `python member.py URL`.
"""

import asyncio
import sys

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore


async def main(url: str) -> None:
    member, table = PulsarExchange(url), PulsarPolicyStore(url)
    await member.open()
    await table.open()
    await member.publish(b"hello")
    await member.receive()
    await table.close()
    await member.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
