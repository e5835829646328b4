"""Compiled kernels: block descent over columns that share costs."""
