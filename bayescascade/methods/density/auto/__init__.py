"""The default density: a chosen cascade, averaged with mixtures by held-out rows."""
