"""Symmetric memory."""

from __future__ import annotations

import numpy as np

from . import _consort


class Memory:
    """Memory with a part on each PE of a team, which all its PEs can put to and get from.

    It is not an array, because PEs may access it at the same time: a `get` during a `put` to the
    same elements returns old or new values. A `quiet` and then a barrier order the two.
    """

    __slots__ = ("_dtype", "_length", "_native")

    def __init__(self, native: _consort.Memory, length: int, dtype: np.dtype) -> None:
        self._native = native
        self._length = length
        self._dtype = dtype

    def __len__(self) -> int:
        return self._length

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self._dtype

    def put(self, array: np.ndarray, to: int, first: int = 0) -> None:
        """Copies an array to the part of PE `to`, from element `first` on."""
        self._native.put(to, first, np.asarray(array))

    def get(
        self,
        source: int,
        first: int = 0,
        count: int | None = None,
        out: np.ndarray | None = None,
    ) -> np.ndarray:
        """Returns elements of the part of PE `source`, from element `first` on.

        These are all elements, or `count` elements, or as many as `out` has. Returns `out` if it is
        given, or else a new array.
        """
        if out is None:
            left = max(self._length - first, 0)
            out = np.empty(left if count is None else count, self._dtype)
        elif count is not None and count != out.size:
            raise ValueError(f"out has {out.size} elements, not {count}")
        self._native.get(source, first, out)
        return out

    def fence(self) -> None:
        """Orders this PE's earlier puts before its later ones, for every PE."""
        self._native.fence()

    def quiet(self) -> None:
        """Waits until this PE's puts are complete."""
        self._native.quiet()
