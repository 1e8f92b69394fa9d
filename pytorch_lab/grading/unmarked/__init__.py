"""Notebooks run without marks: a learner's checks in a terminal, an author's lesson."""
