"""Copies of tensors to a device. For CUDA, the copies overlap the computation of the device.

An element for CUDA is written into page-locked buffers, which the device reads asynchronously on a stream of its own.
There are two sets of buffers: one is filled while the device reads the other. Three rules make this safe:

- Buffers are reused only after the event that marks the end of their last copies.
- The computing stream waits for that event before it gets the tensors.
- The allocator is told that the computing stream uses the tensors. Otherwise it would reuse their memory for a later
  copy when the last reference is dropped, while kernels may still read it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import torch

from dataset.adapters.torch.to_tensors import Array, Make, TorchTensors, pinned_tensor_of, raw, tensor_of, torch_dtype
from dataset.dataset import Dataset

_SETS = 2  # sets of buffers: one is filled while the device reads the other


class Target(NamedTuple):
    """The memory in which tensors are requested.

    Attributes:
        device: a ``torch.device``; None for host memory.
        pins: whether host memory is page-locked.
    """

    device: Any
    pins: bool

    @property
    def is_cuda(self) -> bool:
        """Whether copies can overlap computation."""
        return self.device is not None and self.device.type == "cuda"

    @property
    def make(self) -> Make:
        """The function that makes a tensor in this memory, synchronously."""
        if self.device is not None and self.device.type != "cpu":
            return lambda array: tensor_of(array).to(self.device)
        return pinned_tensor_of if self.pins else tensor_of

    def require_no_worker(self) -> None:
        """Check that this is not a worker of a DataLoader, in which accelerators cannot be used.

        Raises:
            RuntimeError: if it is one, and a device or page-locked memory is requested.
        """
        if torch.utils.data.get_worker_info() is None:
            return
        if self.device is not None and self.device.type not in {"cpu", "meta"}:
            raise RuntimeError(
                f"to_torch(): device={str(self.device)!r} cannot be used in the workers of a DataLoader: leave it out "
                "and copy in the training loop, as with batch.to(device, non_blocking=True)"
            )
        if self.pins:
            raise RuntimeError(
                "to_torch(): pin_memory=True cannot be used in the workers of a DataLoader: give it to the DataLoader"
            )


def target(device: Any, pin_memory: bool) -> Target:
    """Return the target for the arguments of ``to_torch``.

    Raises:
        ValueError: if the device does not exist on this machine.
        TypeError: if ``device`` is not a device or the name of one.
    """
    try:
        wanted = None if device is None else torch.device(device)
    except (RuntimeError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"to_torch(): device={device!r} is not a torch device: {error}") from None
    if wanted is not None and wanted.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f'to_torch(): device={device!r}, but torch finds no CUDA device; leave it out, or pass "cpu"')
    return Target(wanted, pin_memory and _can_pin())


def _can_pin() -> bool:
    """Return whether there is an accelerator to pin memory for; if not, warn, as a DataLoader does."""
    accelerators = getattr(torch, "accelerator", torch.cuda)  # the former is newer than torch 2.4
    if accelerators.is_available():
        return True
    warnings.warn("to_torch(): pin_memory=True has no effect: torch finds no accelerator", stacklevel=5)
    return False


class Card:
    """A CUDA device and a stream for copies. All CUDA calls of this module are made here."""

    def __init__(self, device: Any) -> None:
        index = torch.cuda.current_device() if device.index is None else device.index
        self.device = torch.device("cuda", index)
        self.stream = torch.cuda.Stream(self.device)

    def buffer(self, nbytes: int) -> Any:
        """Return a buffer of page-locked bytes."""
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)

    def aside(self) -> AbstractContextManager[Any]:
        """Return a context in which operations run on the stream for copies."""
        context: AbstractContextManager[Any] = torch.cuda.stream(self.stream)
        return context

    def copy(self, host: Any) -> Any:
        """Start to copy a tensor in page-locked memory to the device."""
        return host.to(self.device, non_blocking=True)

    def mark(self) -> Any:
        """Return an event that occurs when all copies started so far are done."""
        event = torch.cuda.Event()
        event.record(self.stream)
        return event

    def hand_over(self, copied: Any, tensors: list[Any]) -> None:
        """Make the computing stream wait for an event, and tell the allocator that it uses these tensors."""
        computing = torch.cuda.current_stream(self.device)
        computing.wait_event(copied)
        for tensor in tensors:
            tensor.record_stream(computing)


class _Buffers:
    """Page-locked memory for the arrays of one element."""

    def __init__(self, card: Card) -> None:
        self._card = card
        self._buffers: list[Any] = []
        self._used = 0
        self.copied: Any = None  # the event after the last copies from these buffers
        self.tensors: list[Any] = []

    def begin(self) -> None:
        """Wait until the device has read the last element."""
        if self.copied is not None:
            self.copied.synchronize()
        self._used, self.tensors = 0, []

    def send(self, array: Array) -> Any:
        """Start to copy an array and return the tensor on the device."""
        bits, view = raw(array)
        host = self._room(bits.nbytes).view(torch_dtype(bits.dtype)).view(bits.shape)
        np.copyto(host.numpy(), bits)
        sent = self._card.copy(host)
        self.tensors.append(sent)
        return sent if view is None else sent.view(view)

    def _room(self, nbytes: int) -> Any:
        if self._used == len(self._buffers):
            self._buffers.append(self._card.buffer(nbytes))
        elif len(self._buffers[self._used]) < nbytes:
            self._buffers[self._used] = self._card.buffer(nbytes)
        self._used += 1
        return self._buffers[self._used - 1][:nbytes]


class Sent(NamedTuple):
    """An element that is being copied."""

    element: Any
    copied: Any
    tensors: list[Any]


class Copies:
    """Sender of elements to a CUDA device.

    At most one element may be sent and not yet received when another one is sent.
    """

    def __init__(self, card: Card, wrap: Callable[[Dataset[Any]], Any]) -> None:
        self._card = card
        self._sets = [_Buffers(card) for _ in range(_SETS)]
        self._wrap = wrap

    def send(self, element: Any) -> Sent:
        """Start to copy an element."""
        buffers = self._sets.pop(0)
        self._sets.append(buffers)
        buffers.begin()
        try:
            with self._card.aside():
                sent = TorchTensors(buffers.send, self._wrap)(element)
        finally:
            buffers.copied = self._card.mark()
        return Sent(sent, buffers.copied, buffers.tensors)

    def receive(self, sent: Sent) -> Any:
        """Return the element, ready for use on the current stream."""
        self._card.hand_over(sent.copied, sent.tensors)
        return sent.element
