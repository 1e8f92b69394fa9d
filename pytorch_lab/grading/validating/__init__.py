"""Assignments tried out: on stub, solution and known mistakes, in nbgrader, on a made-up class."""
