"""The dynamic graph: recorded as it ran, walked back, and explained."""
