"""Futures."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")


class Future(Generic[_T]):
    """A value that is there later."""

    def __init__(self) -> None:
        self._future: concurrent.futures.Future[_T] = concurrent.futures.Future()

    def set_result(self, value: _T) -> None:
        self._future.set_result(value)

    def done(self) -> bool:
        return self._future.done()

    def value(self) -> _T:
        return self._future.result(0)

    def wait(self) -> _T:
        try:
            return self._future.result()
        except Exception as error:
            raise RuntimeError(f"{type(error).__name__}: {error}") from error

    def then(self, callback: Callable[[Future[_T]], Any]) -> Future[Any]:
        chained: Future[Any] = Future()

        def call(_: Any) -> None:
            try:
                chained._future.set_result(callback(self))
            except Exception as error:
                chained._future.set_exception(error)

        self._future.add_done_callback(call)
        return chained
