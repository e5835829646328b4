"""Single trees with a price on what they read, and their posterior."""
