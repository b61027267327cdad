"""What a call may not have found, in a test that fails there."""

from typing import TypeVar

_Value = TypeVar("_Value")


def there(value: _Value | None) -> _Value:
    """The value, which there is."""
    assert value is not None
    return value
