"""Compiled code: steps of rows through their neighbors."""
