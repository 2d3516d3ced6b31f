"""Drivers of the systems that are measured against; each runs in a process of its own."""
