"""The command line: parsing arguments and printing, nothing else.

Every command imports what it needs when it runs, so that ``--help`` is quick.
"""

from bayescascade.cli.application import main

__all__ = ["main"]
