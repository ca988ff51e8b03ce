"""The audit: what a design promises, counted in data that its model has not seen.

No model is used here but to make the designs whose promise is checked, and to say what chance does.
"""
