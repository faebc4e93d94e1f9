"""Reader of Arrow IPC files. ipc_file.py is one open file; source.py has the node, a variant of that of Parquet."""
