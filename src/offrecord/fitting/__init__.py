"""Learning from reference records which chains are plausible, and testing what they promise."""
