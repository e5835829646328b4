"""The full histogram, smoothed: every combination of levels is a cell of its own."""
