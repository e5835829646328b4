"""Rows and columns: levels, schemas, tables, labels, matrices, and where they are read from."""
