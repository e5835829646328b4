"""What is compiled: descent over blocks of columns that pay for what they share."""
