"""What can go wrong with a tier: who is to blame, and whether the same call may succeed later."""

from typing import ClassVar

from rgd.errors import RgdError


class TierError(RgdError):
    """A tier cannot do it."""


class TierDown(TierError):
    """The tier cannot be reached, or refuses for now."""

    transient: ClassVar[bool] = True


class TierRefused(TierError):
    """The tier does not let us in: a person has to change a credential or a right."""


class ObjectMissing(TierError):
    """There is no such object."""


class TierChanged(TierDown):
    """What is at this place is not the tier that is remembered: it is unmounted, emptied or replaced."""


class TierConflict(TierError):
    """Other bytes have this name already; nothing was overwritten."""


class TierDamaged(TierError):
    """An object of the tier is not what was written."""
