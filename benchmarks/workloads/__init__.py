"""One file for each workload. Each makes a ``WORKLOAD`` and says what every library does."""
