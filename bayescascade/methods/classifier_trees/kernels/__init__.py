"""What is compiled: which features a node buys."""
