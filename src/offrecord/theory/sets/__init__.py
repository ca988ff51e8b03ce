"""Leakage of one side over a box of models: the largest over outputs and over kernels in it."""
