"""What a release rests on and leaves behind: coins, keys, the ledger, the certificate."""
