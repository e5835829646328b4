"""Mixtures of cascades: classes of rows found by EM, or one cascade, whichever predicts better."""
