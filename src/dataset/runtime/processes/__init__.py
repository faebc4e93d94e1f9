"""Worker processes for parallel operators: functions that hold the GIL run on all cores.

``WorkerProcesses`` (pool.py) is what an operator uses. One *launcher* process per operator imports what is needed
of the library, forks the *workers* and reaps them. Every worker has a socket to the user's process.

    user's process                                 launcher             worker
    pool.py          who does what, deaths, the end
    worker_group.py  the processes of one operator
    keeping.py       groups that rest between iterations
    launcher.py      ------- commands -----------> launcher_main.py --- forks --> worker_main.py
    worker.py        ------- tasks, results ------------------------------------> worker_main.py

What goes through the sockets: connection.py (values), encoding.py (pickles), segments.py and memory.py (arrays, in
shared memory that is used again and again), channel.py (bytes and descriptors), failures.py (exceptions).
bootstrap.py, exit_status.py and forking.py are about how processes begin, end, and are copied.

What a worker is like: modules, arguments, folder and environment are the parent's; ``__main__`` is not run again.
OMP_NUM_THREADS is 1 unless the user has set it. NumPy's and Python's global random generators are seeded anew in each.
It ignores SIGINT, and its process group is not the terminal's. Whatever it has started is killed with it. In the next
iteration of a dataset it gets the function anew, as it is then; modules stay as they are.

Nothing here knows an operation or an element.
"""

from dataset.runtime.processes.pool import WorkerProcesses

__all__ = ["WorkerProcesses"]
