"""Differentiation: the reverse walk over records of operations, eager or symbolic."""
