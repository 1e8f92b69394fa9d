"""What a class handed in, on whatever way, as one submission for each student."""
