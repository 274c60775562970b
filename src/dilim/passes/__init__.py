"""Passes: functions from a graph to a graph that means the same, bit for bit."""
