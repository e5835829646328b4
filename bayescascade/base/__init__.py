"""The lowest room: errors, checks of input, files, and how kernels are compiled."""
