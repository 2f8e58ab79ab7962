"""Nonblocking calls."""

from __future__ import annotations

from typing import Any

from . import _consort
from ._arrays import result


class Request:
    """A call that a team has started. If it is dropped, the call still completes."""

    __slots__ = ("_native", "_shape", "_was_array")

    def __init__(
        self,
        native: _consort.Request,
        shape: tuple[int, ...] | None,
        was_array: bool = False,
    ) -> None:
        self._native = native
        self._shape = shape
        self._was_array = was_array

    def test(self) -> bool:
        """Returns whether the call is complete, without waiting."""
        return self._native.test()

    def wait(self) -> Any:
        """Waits until the call is complete, and returns its result, once.

        The result is that of the blocking call: None if this PE gets none, and for a barrier and
        a message that was sent.
        """
        elements = self._native.wait()
        if elements is None or self._shape is None:
            return None
        return result(elements.reshape(self._shape), self._was_array)
