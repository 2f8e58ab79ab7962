"""The handles of calls."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from .._pe_thread import PeThread


class Work(dist.Work):
    """A call that is complete when torch gets it. It has no tensors."""

    #: The process whose message was received.
    source = -1

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self._tensors: Any = None
        self._error = error

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits for the call, and raises its error."""
        if self._error is not None:
            raise self._error
        return True

    def _outcome(self) -> Any:
        """Returns the tensors of the call, or raises its error."""
        if self._error is not None:
            raise self._error
        return self._tensors

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def source_rank(self) -> int:
        return self.source

    def _source_rank(self) -> int:
        return self.source

    def result(self) -> Any:
        """Waits for the call, and returns its tensors.

        It is None if the thread that asked for the call has made it, as with `asyncOp=False`.
        """
        self.wait()
        return self._outcome()

    def get_future(self) -> torch.futures.Future[Any]:
        """Returns a future with the value of `result`."""
        over: torch.futures.Future[None] = torch.futures.Future()
        future = self._after(over)
        over.set_result(None)
        return future

    def _after(self, over: torch.futures.Future[None]) -> torch.futures.Future[Any]:
        """Returns the future of the outcome, which is there after the end."""
        # C++ code that waits, such as that of DistributedDataParallel, finds an error only in the
        # future of a callback that raised it. It takes that of `set_exception` for tensors.
        return over.then(lambda _: self._outcome())


class Started(Work):
    """A call that a thread of a group makes, and its tensors."""

    def __init__(self, thread: PeThread, name: str, limit: float, tensors: Any) -> None:
        super().__init__()
        self._tensors = tensors
        #: The thread that makes the call.
        self.thread = thread
        self._name = name
        self._limit = limit
        self._is_over = False
        #: Locked until the call is over. A `threading.Event` takes longer than a short call.
        self._until_over = threading.Lock()
        self._until_over.acquire()
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
            if self._is_over:
                return
            self._error = error
            self._is_over = True
            over = self._over
        self._until_over.release()
        if over is not None:
            over.set_result(None)

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        """Waits for the call. After `timeout`, or that of the group if it is shorter, it fails."""
        if not self._is_over:
            self._wait(max(timeout.total_seconds(), 0) or self._limit)
        return super().wait()

    def _wait(self, limit: float) -> None:
        if self.thread.is_current():
            raise RuntimeError(f"{self._name} cannot be waited for in a callback of its group")
        if not self._until_over.acquire(timeout=limit):
            reason = f"{self._name} took longer than {limit:g} s"
            self.thread.fail(reason)
            raise TimeoutError(reason)
        self._until_over.release()  # for others that wait

    def is_completed(self) -> bool:
        return self._is_over

    def get_future(self) -> torch.futures.Future[Any]:
        with self._lock:
            if self._future is not None:
                return self._future
            over: torch.futures.Future[None] = torch.futures.Future()
            future = self._future = self._after(over)
            is_over = self._is_over
            if not is_over:
                self._over = over
        if is_over:
            over.set_result(None)
        return future
