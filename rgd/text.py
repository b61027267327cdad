"""Cuts text that came from outside, before it is shown to anybody."""


def cut(text: str, chars_max: int) -> str:
    """The text, or its beginning and three dots: at most `chars_max` characters of it."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}..."
