"""Compiled loops of prunings: flows, duals, removals, and sampled cuts."""
