"""Compiled code: a sweep of moves, and a search through ranges of levels."""
