"""Tensors: eager execution, the tape, and the functions of the array API."""
