"""The reference back end: NumPy, slow, obviously right."""
