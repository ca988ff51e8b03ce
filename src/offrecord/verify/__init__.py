"""Checking a certificate, and a released table against it."""
