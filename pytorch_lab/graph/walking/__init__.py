"""Walking: torch's own graph, read, watched on its way back, and stepped node by node."""
