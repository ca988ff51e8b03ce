"""The paper: its numbers and figures computed anew, and its bounds as printed."""
