"""A gate that answers easy rows itself, and asks for the labels of others, round by round."""
