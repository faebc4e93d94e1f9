"""Native kernels: optional C code for work on bytes, each with a Python twin that specifies it. Start with library.py.

A kernel takes addresses and lengths and writes into arrays of the caller. It allocates nothing, holds no Python object
and has no global state, so one library serves all Python versions, and calls release the interpreter's lock. At a bad
record it stops and returns the record's index; Python then handles that record with the twin, which raises the error.

The row loop (rows.c, row_loop.py) is another kind: it calls Python functions under the interpreter's lock, and takes
over what they return. It uses the stable ABI without headers, so it is in the same library.

To add a kernel: write it in a C file of this folder, declare it in ``KERNELS`` of library.py, and test it against its
twin.
"""
