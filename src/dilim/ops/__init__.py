"""One definition per primitive operation."""
