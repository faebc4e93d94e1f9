"""What measures: workloads, passes over pipelines in fresh processes, tables and plots. No library is named here."""
