"""Engine of distribute() with actors of a Ray cluster. Ray places the actors and transports their results.

Arrays in results are views of Ray's object store. The plan is in the object store once. Actors are not restarted by Ray
but replaced by new ones, which Ray may place on other machines. If Ray has no room for an actor, one that runs does the
work of another worker, too.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Mapping
from typing import Any

from dataset.extras import load_extra
from dataset.ops.distribute.engine import Start, StoppableEngine, WorkerLostError, received
from dataset.ops.distribute.share_runner import ShareRunner
from dataset.runtime.chunks.chunk import Chunk
from dataset.runtime.processes.transport.encoding import decode
from dataset.runtime.processes.transport.sent_exceptions import Failure
from dataset.runtime.processes.worker_processes import encoded_work

PLACE_SECONDS = 20.0
"""How long Ray may take to start an actor, before one that runs does its work, too."""

START_SECONDS = 300.0
"""How long it may take if no other one runs."""

_log = logging.getLogger("dataset")


def _connected() -> Any:
    """Return the module ray, connected to a cluster: an existing one, or a new one on this machine."""
    ray = load_extra("ray", "distributed", 'distribute(engine="ray") needs')
    if not ray.is_initialized():
        ray.init(log_to_driver=False)
    return ray


def actors_that_fit(resources: Mapping[str, float]) -> int:
    """Return how many actors with these resources the nodes of the cluster have room for together, at least 1."""
    needed = {name: amount for name, amount in {"CPU": 1, **resources}.items() if amount}
    nodes = [node["Resources"] for node in _connected().nodes() if node["Alive"]]
    fitting = (min(int(node.get(name, 0) / amount + 1e-6) for name, amount in needed.items()) for node in nodes)
    return max(1, sum(fitting))


class RayEngine(StoppableEngine):
    """Starts actors that run shares.

    Args:
        runner: what the actors run.
        label: names the operation in errors.
        patience: the heartbeat deadline in seconds.
        resources: what an actor needs, by Ray's names of resources.
    """

    def __init__(self, runner: ShareRunner, label: str, patience: float, resources: Mapping[str, float]) -> None:
        super().__init__(label, patience)
        ray = self.ray = _connected()
        self.resources = {"CPU": 1, **resources}
        others = {key: amount for key, amount in self.resources.items() if key not in {"CPU", "GPU", "memory"}}
        kind = ray.remote(concurrency_groups={"beats": 1})(_ShareActor)
        self._kind = kind.options(
            num_cpus=self.resources["CPU"],
            num_gpus=self.resources.get("GPU", 0),
            memory=self.resources.get("memory"),
            resources=others,
            max_restarts=0,
        )
        encoded = encoded_work(runner, label)
        self._work = ray.put((encoded.pickled, encoded.buffers))
        self.actors: dict[Any, int] = {}  # how many workers each one runs

    def start(self) -> RayWorker:
        with self.lock:
            self.check_usable()
            actor = self._kind.remote(self._work)
            self.actors[actor] = 0
        started, waited = actor.beat.remote(), 0.0
        while not self.ray.wait([started], timeout=PLACE_SECONDS)[0]:
            waited += PLACE_SECONDS
            left = {name: self.ray.available_resources().get(name, 0) for name in self.resources}
            what = f"{self.label}: Ray has not started an actor with {self.resources} for {waited:g} s; {left} are left"
            with self.lock:
                running = {workers: other for other, workers in self.actors.items() if workers}
            if running:
                _log.warning("%s; an actor that runs does its work, too", what)
                self.end(actor)
                return RayWorker(self, running[min(running)])
            if waited >= START_SECONDS:
                self.end(actor)
                raise RuntimeError(f"{what}: use fewer workers or resources")
            _log.warning("%s; no other one runs", what)
        return RayWorker(self, actor)

    def end(self, actor: Any) -> None:
        """Kill an actor."""
        with self.lock:
            self.actors.pop(actor, None)
        with contextlib.suppress(Exception):  # it has died, or Ray has been shut down
            self.ray.kill(actor)

    def stop(self) -> None:
        with self.lock:
            self.stopped = True
            actors = list(self.actors)
        for actor in actors:
            self.end(actor)

    def close(self) -> None:
        self.stop()
        self._work = None


class RayWorker:
    """One worker in an actor. The constructor waits until it has loaded the plan, and raises as ``call`` does."""

    def __init__(self, engine: RayEngine, actor: Any) -> None:
        self._engine = engine
        self._actor = actor
        with engine.lock:
            engine.actors[actor] = engine.actors.get(actor, 0) + 1
        self.node: str = self._received(actor.load.remote(id(self)))

    def call(self, message: Start | int) -> list[Any]:
        engine = self._engine
        engine.check_usable()
        result = self._actor.call.remote(id(self), tuple(message) if isinstance(message, Start) else message)
        while not engine.ray.wait([result], timeout=engine.patience)[0]:
            if not engine.ray.wait([result, self._actor.beat.remote()], timeout=engine.patience)[0]:
                engine.check_usable()
                engine.end(self._actor)
                raise WorkerLostError(f"gave no sign of life for {engine.patience:g} s while it worked")
        return [_unpacked(part) for part in self._received(result)]

    def _received(self, result: Any) -> Any:
        """Return the value of a result; raise the exception that the actor has sent."""
        try:
            reply = self._engine.ray.get(result)
        except self._engine.ray.exceptions.RayTaskError:
            raise
        except self._engine.ray.exceptions.RayError as error:  # the actor, its node or the result is lost
            self._engine.check_usable()
            self._engine.end(self._actor)
            raise WorkerLostError(f"died: {' '.join(str(error).split()):.4000}") from None
        return received(self, _unpacked(reply))

    def end(self) -> None:
        with self._engine.lock:
            self._engine.actors[self._actor] = others = self._engine.actors.get(self._actor, 1) - 1
        if others:
            self._actor.drop.remote(id(self))
        else:
            self._engine.end(self._actor)


class _ShareActor:
    """Runs in an actor's process: the counterpart of one RayWorker or several, by number."""

    def __init__(self, work: tuple[bytes, list[Any]]) -> None:
        self._work = work
        self._runs: dict[int, ShareRunner] = {}

    def load(self, number: int) -> str | Failure:
        ray = load_extra("ray", "distributed", "an actor needs")
        pickled, buffers = self._work
        try:
            self._runs[number] = decode(pickled, [memoryview(buffer) for buffer in buffers])
        except BaseException as error:  # noqa: BLE001  # raised again in the user's process
            return Failure.of(error)
        return f"{ray.util.get_node_ip_address()} ({ray.get_runtime_context().get_node_id()[:8]})"

    def beat(self) -> None:
        pass

    beat.__ray_concurrency_group__ = "beats"  # type: ignore[attr-defined]  # what ray.method() sets

    def drop(self, number: int) -> None:
        del self._runs[number]

    def call(self, number: int, message: Any) -> list[Any] | Failure:
        try:
            parts = self._runs[number](message if type(message) is int else Start(*message), 0, None, None)
            return [_packed(part) for part in parts]
        except BaseException as error:  # noqa: BLE001  # raised again in the user's process
            return Failure.of(error)


def _packed(part: Any) -> Any:
    """Return a chunk as columns, whose arrays Ray puts into its object store, and an exception as a Failure."""
    if isinstance(part, Chunk):
        return Chunk, part.structure, part.length, part.columns()
    return Failure.of(part) if isinstance(part, BaseException) else part


def _unpacked(part: Any) -> Any:
    if isinstance(part, Failure):
        return part.exception()
    return Chunk(*part[1:]) if isinstance(part, tuple) and part[0] is Chunk else part
