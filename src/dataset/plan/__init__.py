"""What a pipeline is: nodes, structures, specs, cardinalities. Open to read; promises nothing to users."""
