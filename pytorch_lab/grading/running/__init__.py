"""Notebooks run by nbval in warm kernels, and the verdicts that come of it."""
