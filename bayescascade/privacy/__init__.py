"""Differential privacy: sources of noise, mechanisms with their proofs, budgets, and audits.

Two data sets are neighbors if they have the same number of rows and differ in one row: privacy is
under substitution. A mechanism M is (epsilon, delta)-private if P(M(x) in E) <= exp(epsilon)
P(M(x') in E) + delta for all neighbors x and x' and all events E.
"""
