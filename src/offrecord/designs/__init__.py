"""Designs for the secrets of a table: which are needed, and files of them."""

from offrecord._moved import names_moved

__getattr__ = names_moved(__name__)
