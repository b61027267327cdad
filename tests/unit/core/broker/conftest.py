"""Brokers that check themselves when the test is over."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.core.broker.desk import Desk
from tests.unit.core.broker.sharing_house import House

Seat = Callable[..., Desk]


@pytest.fixture
def seat() -> Iterator[Seat]:
    """Makes desks with settings."""
    made: list[Desk] = []

    def sit(**settings: Any) -> Desk:
        made.append(Desk(**settings))
        return made[-1]

    yield sit
    for desk in made:
        desk.broker.validate()


@pytest.fixture
def desk(seat: Seat) -> Desk:
    """A broker that was not started."""
    return seat()


@pytest.fixture
def live(desk: Desk) -> Desk:
    """A broker alone that believes the map; it is 2005 ms old."""
    desk.go_live()
    return desk


@pytest.fixture
def house() -> Iterator[House]:
    """Shares with a gate that keeps what it is told."""
    made = House()
    yield made
    made.sharing.validate()
