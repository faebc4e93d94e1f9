"""How a plan runs: chunks, operators, threads, saved state. Open to read; promises nothing to users."""
