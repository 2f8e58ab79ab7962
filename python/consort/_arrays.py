"""Converts the arguments of calls to arrays, and arrays to the results of calls."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

#: The number of the processor's memory in DLPack.
_CPU = 1

#: Arguments that are converted, and share no memory.
_VALUES = (int, float, complex, str, list, tuple, np.generic)


def given(value: Any) -> tuple[np.ndarray, bool]:
    """Returns the value as an array, and whether it has one: whether the array is in its memory."""
    if isinstance(value, np.ndarray):
        return value, True
    shared = None if isinstance(value, _VALUES) else _shared(value)
    return (np.array(value, order="C"), False) if shared is None else (shared, True)


def writable(out: Any) -> np.ndarray:
    """Returns the array in the memory of an argument for a result."""
    if isinstance(out, np.ndarray):
        return out
    shared = None if isinstance(out, _VALUES) else _shared(out)
    if shared is None:
        raise TypeError(f"out must be an array, not {type(out).__name__}")
    return shared


def _shared(value: Any) -> np.ndarray | None:
    """Returns an array in the memory of an object, if it shares that by DLPack or as a buffer."""
    if hasattr(value, "__dlpack__"):
        return _from_dlpack(value)
    try:
        return np.asarray(memoryview(value))
    except TypeError:
        return None


def _from_dlpack(value: Any) -> np.ndarray:
    kind = type(value).__name__
    try:
        device, _ = value.__dlpack_device__()
    except ValueError as error:
        raise ValueError(f"the {kind} has no memory that can be shared: {error}") from None
    if device != _CPU:
        raise ValueError(
            f"the {kind} is not in the processor's memory: copy it there, such as with cpu()"
        )
    try:
        if str(getattr(value, "dtype", "")) == "torch.bfloat16":
            bits = np.from_dlpack(value.detach().view(sys.modules["torch"].int16))
            return bits.view(np.dtype("bfloat16"))
        return np.from_dlpack(value)
    except (BufferError, RuntimeError) as error:
        raise ValueError(f"the {kind} cannot be used as an array: {error}") from None


def result(array: np.ndarray, was_array: bool, out: Any = None) -> Any:
    """Returns `out` if it was given; else the array, or a number if the argument was a number."""
    if out is not None:
        return out
    return array if was_array or array.ndim > 0 else array[()]


def blocks(array: np.ndarray, pes: int, call: str) -> tuple[int, ...]:
    """Returns the shape of a block of an array with a block for each PE along its first axis."""
    if array.ndim == 0 or array.shape[0] != pes:
        raise ValueError(
            f"{call} among {pes} PEs takes an array with a block for each PE along its first axis, "
            f"of shape ({pes}, ...), not {array.shape}: use array.reshape({pes}, -1)"
        )
    return array.shape[1:]


def target(out: Any, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns the array for a result of this shape: that of `out` if given, or else a new array."""
    if out is None:
        return np.empty(shape, dtype)
    array = writable(out)
    if array.shape != shape:
        raise ValueError(f"out has shape {array.shape}, but the result has shape {shape}")
    if array.dtype != dtype:
        raise TypeError(f"out has type {array.dtype}, but the result has type {dtype}")
    return array
