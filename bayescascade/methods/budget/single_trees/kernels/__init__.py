"""The compiled sweep of tree moves."""
