"""The full smoothed histogram: each combination of levels is a cell."""
