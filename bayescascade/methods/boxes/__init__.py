"""A rare class as a union of a few axis-parallel boxes: exact, averaged, and fast."""
