"""The handle of a call."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .._pe_thread import PeThread


class Work(dist.Work):
    """A call that a thread of a group makes."""

    def __init__(self, thread: PeThread, name: str, limit: float, tensors: Any) -> None:
        super().__init__()
        #: The thread that makes the call.
        self.thread = thread
        self._name = name
        self._limit = limit
        self._tensors = tensors
        #: The process whose message was received.
        self.source = -1
        self._is_over = threading.Event()
        self._error: BaseException | None = None
        self._lock = threading.Lock()
        #: The futures of the end and of the outcome, if somebody has asked for them.
        self._over: torch.futures.Future[None] | None = None
        self._future: torch.futures.Future[Any] | None = None

    def complete(self) -> None:
        """Reports that the call is complete."""
        self._end(None)

    def fail(self, error: Exception) -> None:
        """Reports that the call has failed."""
        self._end(error)

    def _end(self, error: Exception | None) -> None:
        with self._lock:
            self._error = error
            self._is_over.set()
            over = self._over
        if over is not None:
            over.set_result(None)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits for the call. After `timeout`, or else that of the group, the group fails."""
        limit = timeout.total_seconds() or self._limit
        if self.thread.is_current() and not self._is_over.is_set():
            raise RuntimeError(f"{self._name} cannot be waited for in a callback of its group")
        if not self._is_over.wait(limit):
            reason = f"{self._name} took longer than {limit:g} s"
            self.thread.fail(reason)
            raise TimeoutError(reason)
        self._outcome()
        return True

    def _outcome(self) -> Any:
        """Returns the tensors of the call, or raises its error."""
        if self._error is not None:
            raise self._error
        return self._tensors

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._is_over.is_set()

    def is_success(self) -> bool:
        return self._is_over.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def source_rank(self) -> int:
        return self.source

    def _source_rank(self) -> int:
        return self.source

    def result(self) -> Any:
        self.wait()
        return self._outcome()

    def get_future(self) -> torch.futures.Future[Any]:
        with self._lock:
            if self._future is not None:
                return self._future
            over: torch.futures.Future[None] = torch.futures.Future()
            # C++ code that waits, such as that of DistributedDataParallel, finds an error only in
            # the future of a callback that raised it. It takes that of `set_exception` for tensors.
            future = self._future = over.then(lambda _: self._outcome())
            is_over = self._is_over.is_set()
            if not is_over:
                self._over = over
        if is_over:
            over.set_result(None)
        return future
