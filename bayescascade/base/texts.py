"""Text from files and cells, in a form that can be printed."""

_LONGEST = 600


def printable(text: str) -> str:
    r"""Return text with control characters and lone surrogates escaped, as in ``\n``."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
    )


def shortened(text: str) -> str:
    """Return text on one line; the middle of a long text is left out."""
    if len(text) > _LONGEST:
        text = f"{text[: _LONGEST // 2]} ... {text[-_LONGEST // 2 :]}"
    return printable(text)


def with_article(noun: str) -> str:
    """Return "a tree", or "an effect model"."""
    return f"{'an' if noun[:1].lower() in set('aeio') else 'a'} {noun}"
