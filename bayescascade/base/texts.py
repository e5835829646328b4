"""Text from files and cells, made fit to be shown."""

__all__ = ["printable"]


def printable(text: str) -> str:
    r"""Return text with control characters and lone surrogates escaped, as in ``\n``."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )
