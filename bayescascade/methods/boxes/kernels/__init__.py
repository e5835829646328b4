"""What is compiled: a sweep of moves, and a search through ranges of levels."""
