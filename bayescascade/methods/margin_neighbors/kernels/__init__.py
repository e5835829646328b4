"""Compiled code: steps of rows through their neighbors, and sums over boxes."""
