"""One folder for each family of methods, with the same rooms in each."""
