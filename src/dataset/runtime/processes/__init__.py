"""Worker processes for parallel operators: functions that hold the GIL run on all cores.

Operators use ``WorkerProcesses`` (worker_processes.py). One *launcher* process per operator imports the required part
of the library, forks the *workers* and reaps them. Every worker has a socket to the user's process. After the iteration
they rest, and the next operator takes them.

    user's process                                    launcher             worker
    worker_processes.py scheduling, deaths, shutdown
    worker_group.py     the processes of one operator
    resting_groups.py   groups that rest until an operator takes them
    launcher.py         ------- commands -----------> launcher_main.py --- forks --> worker_main.py
    worker.py           ------- tasks, results ------------------------------------> worker_main.py

The sockets transfer: connection.py (values), encoding.py (pickles), segments.py and shared_memory.py (arrays, in reused
shared memory), channel.py (bytes and descriptors), sent_exceptions.py (exceptions). bootstrap.py and exit_status.py
handle how processes begin and end, and world/forking.py how they are forked.

The environment of a worker: modules, arguments, working directory and environment variables are the parent's;
``__main__`` is not run again. OMP_NUM_THREADS is 1 unless the user has set it. NumPy's and Python's global random
generators are reseeded in each worker. Workers ignore SIGINT and have process groups of their own. Processes that a
worker has started are killed with it. Each iteration sends the current version of the function; imported modules stay
as they are.

Nothing in this package depends on a particular operation or element type.
"""

from dataset.lazy_imports import lazy_imports

with lazy_imports():  # most pipelines have no worker processes
    from dataset.runtime.processes.resting_groups import resting_count
    from dataset.runtime.processes.worker_processes import WorkerProcesses

__all__ = ["WorkerProcesses", "resting_count"]
