"""Transport between the parent and its workers: messages on sockets, arrays in shared memory, exceptions."""
