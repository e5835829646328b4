"""What is compiled: rows step by step through their neighbors, and sums over boxes."""
