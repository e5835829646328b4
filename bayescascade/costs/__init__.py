"""What features cost: items and groups, limits, buying features one by one, and cost curves."""
