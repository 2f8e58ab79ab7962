"""What calls take and return: arrays as they are, and numbers and lists as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np


def given(value: Any) -> tuple[np.ndarray, bool]:
    """The array, and whether it was one."""
    if isinstance(value, np.ndarray):
        return value, True
    return np.array(value, order="C"), False


def result(array: np.ndarray, was_array: bool) -> Any:
    """An array for an array, and a number for a number."""
    return array if was_array or array.ndim > 0 else array[()]


def blocks(array: np.ndarray, pes: int, call: str) -> tuple[int, ...]:
    """The shape of a block of an array that has one for each PE along its first axis."""
    if array.ndim == 0 or array.shape[0] != pes:
        raise ValueError(
            f"{call} among {pes} PEs takes an array with a block for each PE along its first axis, "
            f"of shape ({pes}, ...), not {array.shape}: use array.reshape({pes}, -1)"
        )
    return array.shape[1:]


def target(out: np.ndarray | None, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An array for a result of this shape: `out`, if it is given and fits."""
    if out is None:
        return np.empty(shape, dtype)
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is an array, not {type(out).__name__}")
    if out.shape != shape:
        raise ValueError(f"out is of shape {out.shape}, and the result of {shape}")
    if out.dtype != dtype:
        raise TypeError(f"out is of {out.dtype}, and the result of {dtype}")
    return out
