"""Recording: what runs forward becomes rows of numbers, with lines, modules and values."""
