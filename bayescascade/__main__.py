"""``python -m bayescascade`` is the command line."""

from bayescascade.cli import main

main()
