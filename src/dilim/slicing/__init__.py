"""Compiling ordinary Python: for now, models of the scalar engine."""
