"""Names as parts of the admin API's paths."""

from urllib.parse import quote


def quoted(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def path_of(full: str) -> str:
    """`tenant/namespace/topic` as a path: slashes within the topic are part of its name."""
    return "/".join(quoted(part) for part in full.split("/", 2))


def path_of_topic(full: str) -> str:
    """`persistent://tenant/namespace/topic` as a path."""
    domain, _, rest = full.partition("://")
    return f"{domain}/{path_of(rest)}"
