"""Bayesian causal inference by structural marginalisation over causal orders."""
