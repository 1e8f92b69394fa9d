"""The gradebook, and the marks that are written from it."""
