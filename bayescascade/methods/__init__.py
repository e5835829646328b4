"""One folder for each family of methods, all with a similar structure."""
