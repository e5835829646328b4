"""What is compiled: growing boosted trees, and sums of logistic losses."""
