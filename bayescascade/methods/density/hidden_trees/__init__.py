"""Trees of hidden states, one for each column."""
