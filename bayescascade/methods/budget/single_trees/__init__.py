"""Single trees with a price on the features that they read, and their posterior."""
