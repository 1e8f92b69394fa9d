"""Comparing: two runs of one function, and the decision at which they part."""
