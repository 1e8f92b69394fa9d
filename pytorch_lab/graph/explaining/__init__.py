"""Explaining: why a gradient is None, wrong, or an error; the line, and the cure."""
