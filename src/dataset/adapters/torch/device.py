"""Bringing tensors to a device. For CUDA, so that the copies overlap what the device computes.

An element on its way to CUDA is written into page-locked buffers, from which the device reads by itself, on a stream
beside the one that computes. There are two sets of buffers: while the device still reads the one, the other is filled.
Three things keep it safe. Buffers are written again only after the event that marks the end of their last copies. The
computing stream waits for that event before it gets the tensors. And the allocator is told that this stream uses them,
or it would give their memory to a later copy as soon as the last reference is dropped, while kernels still read it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import torch

from dataset.adapters.torch.tensors import Array, Make, TorchTensors, pinned_tensor_of, raw, tensor_of, torch_dtype
from dataset.dataset import Dataset

_SETS = 2  # of buffers: one to be filled while the device reads the other


class Target(NamedTuple):
    """Where tensors are wanted.

    Attributes:
        device: a ``torch.device``; None for memory of the host.
        pins: whether that memory is page-locked.
    """

    device: Any
    pins: bool

    @property
    def is_cuda(self) -> bool:
        """Whether copies can overlap."""
        return self.device is not None and self.device.type == "cuda"

    @property
    def make(self) -> Make:
        """Makes a tensor there, at once."""
        if self.device is not None and self.device.type != "cpu":
            return _To(self.device)
        return pinned_tensor_of if self.pins else tensor_of

    def require_no_worker(self) -> None:
        """Check that this is not a worker of a DataLoader, in which no accelerator may be used.

        Raises:
            RuntimeError: if it is one, and a device is asked for.
        """
        if torch.utils.data.get_worker_info() is None:
            return
        if self.device is not None and self.device.type not in {"cpu", "meta"}:
            raise RuntimeError(
                f"to_torch(): device={str(self.device)!r} cannot be used in the workers of a DataLoader: leave it out, "
                "and copy in the loop, such as batch.to(device, non_blocking=True)"
            )
        if self.pins:
            raise RuntimeError(
                "to_torch(): pin_memory=True cannot be used in the workers of a DataLoader: give it to the DataLoader"
            )


class _To:
    def __init__(self, device: Any) -> None:
        self._device = device

    def __call__(self, array: Array) -> Any:
        return tensor_of(array).to(self._device)


def target(device: Any, pin_memory: bool) -> Target:
    """Where a user wants tensors.

    Raises:
        ValueError: if there is no such device here.
        TypeError: if it is no name of a device.
    """
    try:
        wanted = None if device is None else torch.device(device)
    except (RuntimeError, TypeError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(f"to_torch(): device={device!r} is none that torch knows: {error}") from None
    if wanted is not None and wanted.type == "cuda" and not torch.cuda.is_available():
        raise ValueError(f'to_torch(): device={device!r}, but torch finds no CUDA here; leave it out, or give "cpu"')
    return Target(wanted, pin_memory and _can_pin())


def _can_pin() -> bool:
    """As a DataLoader does, say so where there is nothing to pin memory for, and go on without."""
    accelerators = getattr(torch, "accelerator", torch.cuda)  # the former is newer than torch 2.4
    if accelerators.is_available():
        return True
    warnings.warn("to_torch(): pin_memory=True has no effect: torch finds no accelerator here", stacklevel=5)
    return False


class Card:
    """A CUDA device with a stream for copies: all that is asked of it, in one place."""

    def __init__(self, device: Any) -> None:
        index = torch.cuda.current_device() if device.index is None else device.index
        self.device = torch.device("cuda", index)
        self.stream = torch.cuda.Stream(self.device)

    def buffer(self, nbytes: int) -> Any:
        """Page-locked bytes."""
        return torch.empty(nbytes, dtype=torch.uint8, pin_memory=True)

    def aside(self) -> AbstractContextManager[Any]:
        """What is asked for inside is done on the stream for copies."""
        context: AbstractContextManager[Any] = torch.cuda.stream(self.stream)
        return context

    def copy(self, host: Any) -> Any:
        """Begin to copy a tensor in page-locked memory."""
        return host.to(self.device, non_blocking=True)

    def mark(self) -> Any:
        """An event: all copies up to now are done."""
        event = torch.cuda.Event()
        event.record(self.stream)
        return event

    def hand_over(self, copied: Any, tensors: list[Any]) -> None:
        """Have the stream that computes wait for an event, and the allocator know that it uses these tensors."""
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
        self.copied: Any = None  # the event behind the last copies out of here
        self.tensors: list[Any] = []

    def begin(self) -> None:
        """Wait until nobody reads the last element any more."""
        if self.copied is not None:
            self.copied.synchronize()
        self._used, self.tensors = 0, []

    def send(self, array: Array) -> Any:
        """The tensor on the device, to which the array is being copied."""
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
    """Sends elements to a CUDA device.

    At most one may have been sent and not received when another is.
    """

    def __init__(self, card: Card, wrap: Callable[[Dataset[Any]], Any]) -> None:
        self._card = card
        self._sets = [_Buffers(card) for _ in range(_SETS)]
        self._wrap = wrap

    def send(self, element: Any) -> Sent:
        """Begin to copy an element."""
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
        """The element, for the stream that is current."""
        self._card.hand_over(sent.copied, sent.tensors)
        return sent.element
