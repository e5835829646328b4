"""Densities: trees, mixtures, histograms, and the choice and average of them."""
