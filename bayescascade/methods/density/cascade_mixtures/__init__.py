"""Mixtures of cascades: classes of rows by EM, or one cascade if it predicts better."""
