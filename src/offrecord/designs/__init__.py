"""Designs for the secrets of a table: which are needed, and files of them."""
