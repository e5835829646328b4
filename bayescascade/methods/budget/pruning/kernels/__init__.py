"""Compiled loops of prunings: flows, duals, and sampled cuts."""
