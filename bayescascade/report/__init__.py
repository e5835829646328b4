"""Output of a fit: text, HTML and pictures."""
