"""Several releases of the same records: tables that grow, and what releases tell together (R8)."""
