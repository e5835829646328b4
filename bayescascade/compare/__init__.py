"""Densities beside each other on halves of a table: Goh (2018), section 3.3.

`contenders` are the densities and how their settings are chosen, `halvings` the experiment.
"""
