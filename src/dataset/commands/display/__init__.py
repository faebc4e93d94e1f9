"""Display of records in a terminal: their content type, features, pictures and progress."""
