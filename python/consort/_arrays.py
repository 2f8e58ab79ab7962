"""Converts the arguments of calls to arrays, and arrays to the results of calls."""

from __future__ import annotations

from typing import Any

import numpy as np


def given(value: Any) -> tuple[np.ndarray, bool]:
    """Returns the value as an array, and whether it was one."""
    if isinstance(value, np.ndarray):
        return value, True
    return np.array(value, order="C"), False


def result(array: np.ndarray, was_array: bool) -> Any:
    """Returns the array, or a number if the argument was a number."""
    return array if was_array or array.ndim > 0 else array[()]


def blocks(array: np.ndarray, pes: int, call: str) -> tuple[int, ...]:
    """Returns the shape of a block of an array with a block for each PE along its first axis."""
    if array.ndim == 0 or array.shape[0] != pes:
        raise ValueError(
            f"{call} among {pes} PEs takes an array with a block for each PE along its first axis, "
            f"of shape ({pes}, ...), not {array.shape}: use array.reshape({pes}, -1)"
        )
    return array.shape[1:]


def target(out: np.ndarray | None, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Returns the array for a result of this shape: `out` if given, or else a new array."""
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out must be an array, not {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out has shape {out.shape}, but the result has shape {shape}")
    if out.dtype != dtype:
        raise TypeError(f"out has type {out.dtype}, but the result has type {dtype}")
    return out
