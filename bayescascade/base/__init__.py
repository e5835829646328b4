"""The ground: errors, checks of input, files, and how kernels are compiled."""
