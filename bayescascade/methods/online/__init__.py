"""A gate that predicts easy rows, and buys the labels of others, round by round."""
