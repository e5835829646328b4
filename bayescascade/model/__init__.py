"""The base of all families: posteriors, searches, and their results."""
