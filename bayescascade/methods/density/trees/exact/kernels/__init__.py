"""Compiled parts of the exact recursion over boxes."""
