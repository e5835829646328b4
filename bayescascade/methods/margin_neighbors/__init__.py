"""Features asked for row by row: its neighbors in what is measured say which is next."""
