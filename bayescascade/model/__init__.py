"""What every family stands on: posteriors, searches, and what they find."""
