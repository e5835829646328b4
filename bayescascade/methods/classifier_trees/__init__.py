"""Trees of linear classifiers that buy more features only where more is needed."""
