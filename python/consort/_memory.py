"""Symmetric memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from . import _consort
from ._arrays import given, writable


class Memory:
    """Memory with a part on each PE of a team, which all its PEs can put to and get from.

    `array` is this PE's part as an array. PEs may access a part at the same time: a `get` during a
    `put` to the same elements returns old or new values. A `quiet` and then a barrier order the
    two.
    """

    __slots__ = ("_dtype", "_native", "_parts", "_rank", "_shape")

    def __init__(
        self, native: _consort.Memory, shape: tuple[int, ...], dtype: np.dtype, rank: int
    ) -> None:
        self._native = native
        self._shape = shape
        self._dtype = dtype
        self._rank = rank
        # One for each PE, so that a call detects that two of its arrays overlap.
        self._parts: dict[int, np.ndarray] = {}

    def __len__(self) -> int:
        return math.prod(self._shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of each part."""
        return self._shape

    @property
    def dtype(self) -> np.dtype:
        """The type of the elements."""
        return self._dtype

    @property
    def array(self) -> np.ndarray:
        """This PE's part as an array, which is not a copy: what it stores, the other PEs can get.

        Calls of the team that are given it, or a contiguous slice of it, work in it. Between
        processes they copy less than with other arrays.
        """
        return self.part(self._rank)

    def part(self, pe: int) -> np.ndarray:
        """Returns the part of a PE as an array, which is not a copy.

        The array keeps the memory, also after `launch` or `attach` has returned, `free` has freed
        the team, or an attachment is closed. In a child that this process forks, it is a copy.

        Raises:
            ValueError: if the PE is not in the team.
        """
        found = self._parts.get(pe)
        if found is None:
            elements = np.asarray(self._native.part(pe))
            found = self._parts[pe] = elements.view(self._dtype).reshape(self._shape)
        return found

    def put(self, array: np.ndarray, to: int, first: int = 0) -> None:
        """Copies an array to the part of PE `to`, from element `first` on."""
        self._native.put(to, first, given(array)[0])

    def get(
        self,
        source: int,
        first: int = 0,
        count: int | None = None,
        out: Any = None,
    ) -> Any:
        """Returns elements of the part of PE `source`, from element `first` on.

        These are all elements, or `count` elements, or as many as `out` has. Returns `out` if it is
        given, or else a new array.
        """
        if out is None:
            left = max(len(self) - first, 0)
            out = np.empty(left if count is None else count, self._dtype)
        received = writable(out)
        if count is not None and count != received.size:
            raise ValueError(f"out has {received.size} elements, not {count}")
        self._native.get(source, first, received)
        return out

    def fence(self) -> None:
        """Orders this PE's earlier puts before its later ones, for every PE."""
        self._native.fence()

    def quiet(self) -> None:
        """Waits until this PE's puts are complete."""
        self._native.quiet()
