"""A cheap gate keeps easy rows for a cheap classifier, and sends hard ones to an expensive one."""
