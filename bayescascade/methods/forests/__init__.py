"""Forests over numeric matrices, grown for a budget of what their features cost."""
