"""Worst-case leakage of one side over a set of models: kernels free by step inside a box."""
