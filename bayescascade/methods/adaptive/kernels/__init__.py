"""What is compiled: growing boosted trees."""
