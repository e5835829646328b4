"""What people and other programs see of a fit: text, pictures, ArviZ data."""
