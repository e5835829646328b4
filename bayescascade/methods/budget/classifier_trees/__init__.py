"""Trees of linear classifiers that buy more features only for rows that need them."""
