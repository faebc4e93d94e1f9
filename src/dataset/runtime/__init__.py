"""Runtime: chunks, operators, threads and saved state of a running plan. Internal, without stability guarantees."""
