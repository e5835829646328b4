"""The effect of a treatment on each row: one function, from one of two outcomes per row."""
