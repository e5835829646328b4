"""Rows and columns: levels, schemas, tables, labels, matrices, and their sources."""
