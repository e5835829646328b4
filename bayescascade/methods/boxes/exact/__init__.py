"""The best union of boxes, with a proof or a bound."""
