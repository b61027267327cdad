"""A process that joins exchange and table, says and hears something, leaves and ends at once.

A program, run by test_leaving.py as `python member.py URL`.
"""

import asyncio
import sys

from rgd.adapters.exchange.pulsar import PulsarExchange
from rgd.adapters.exchange.pulsar_table import PulsarPolicyStore
from tests.contract.exchange.backends import PATIENT


async def main(url: str) -> None:
    member = PulsarExchange(url, settings=PATIENT)
    table = PulsarPolicyStore(url, settings=PATIENT)
    await member.open()
    await table.open()
    await member.publish(b"hello")
    await member.receive()
    await table.close()
    await member.close()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
