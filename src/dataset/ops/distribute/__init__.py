"""distribute(): a plan that runs in worker processes, on this machine or on those of a Ray cluster.

distribute.py has the node, operator.py what runs in the user's process. Each worker runs a share of the plan
(share_runner.py), which the sharding pass determines. An engine (engine.py) starts and ends workers: processes.py those
of this machine, actors.py the actors of a Ray cluster.
"""

from dataset.lazy_imports import lazy_imports

with lazy_imports():  # most pipelines have no workers
    from dataset.ops.distribute.actors import RayEngine, actors_that_fit
    from dataset.ops.distribute.processes import ProcessEngine

__all__ = ["ProcessEngine", "RayEngine", "actors_that_fit"]
