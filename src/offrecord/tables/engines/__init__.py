"""Engines: how the rows of a table come and go. What is done to them is the same for all."""
