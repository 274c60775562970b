"""Devices, storage, files, and running a graph on a back end."""
