"""The families whose command is made from their declarations; a new one must be listed here."""

from bayescascade.methods.boxes.parameters import BOXES

COMMANDS = (BOXES,)
"""Other commands, made from their declarations."""
