"""The PE of this process, whose calls any thread makes, or asks a thread of its own to make."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from multiprocessing.util import Finalize
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from . import _consort

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

_Result = TypeVar("_Result")

#: The shortest and the longest time in seconds between two polls of what is pending.
_NAPS = (20e-6, 1e-3)

_FORKED = "this process was forked from a PE, and is not one: attach to another job"
_CLOSED = "the attachment is closed"

#: The number of forks between the first process and this one.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


os.register_at_fork(after_in_child=_count_fork)


class PeThread:
    """The thread of a PE, which lives until it is closed.

    Other threads post tasks, which it runs in their order. Between them it polls what they have
    left pending. If there are no tasks, another thread makes a call itself, which is faster.
    """

    def __init__(
        self,
        rank: int | None,
        size: int | None,
        name: str | None,
        all_gather: Callable[[bytes], Iterable[bytes]] | None,
        timeout: float,
        address: str | None = None,
        descriptor: FileDescriptorLike | None = None,
    ) -> None:
        self._tasks: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        #: Functions of the PE's thread that return whether something is complete.
        self._polls: list[Callable[[], bool]] = []
        #: The number of tasks that are not done.
        self._waiting = 0
        self._is_closed = False
        self._lock = threading.Lock()
        #: Held by a thread that makes a call itself.
        self._turn = threading.Lock()
        self._process = os.getpid()
        self._forks = _forks
        self._begun: Future[_consort.Team] = Future()
        self._ended: Future[None] = Future()
        # `multiprocessing` calls it at the end of the interpreter, and of its own processes.
        self._at_exit = Finalize(None, self._exit, exitpriority=10)
        ways = (name, address, descriptor, all_gather)
        attach = partial(_consort.attach, self._serve, (), rank, size, *ways, timeout)
        self._thread = threading.Thread(target=self._run, args=(attach,), name="PE", daemon=True)
        self._thread.start()
        try:
            #: The team of all PEs, for the PE's thread.
            self.native = self._begun.result()
        except BaseException:
            self._stop()  # the processes may meet after a Ctrl-C
            raise

    def _run(self, attach: Callable[[bool], Any]) -> None:
        try:
            attach(True)
        except BaseException as error:
            if not self._begun.done():
                self._begun.set_exception(error)
            self._ended.set_exception(error)
        else:
            self._ended.set_result(None)
        self._at_exit.cancel()

    def _serve(self, native: _consort.Team) -> None:
        """Runs tasks until the thread is closed, as the program of the PE."""
        self._begun.set_result(native)
        while (task := self._next()) is not None:
            task()
            del task  # with what it refers to
            with self._lock:
                self._waiting -= 1

    def _next(self) -> Callable[[], None] | None:
        """Waits for the next task, and polls meanwhile what is pending."""
        since = time.monotonic()
        while self._polls:
            count = len(self._polls)
            self._polls = [poll for poll in self._polls if not poll()]
            if len(self._polls) < count:
                since = time.monotonic()
            # So a long wait takes hardly any time of a processor, and ends late only by a fraction.
            nap = min(max((time.monotonic() - since) / 16, _NAPS[0]), _NAPS[1])
            try:
                return self._tasks.get(timeout=nap)
            except Empty:
                continue
        return self._tasks.get()

    def poll(self, is_complete: Callable[[], bool]) -> None:
        """Polls on the PE's thread until `is_complete`, which raises no exception, is true."""
        if self.is_current():
            self._polls.append(is_complete)
        else:
            self.post(lambda: self._polls.append(is_complete))

    def post(self, task: Callable[[], None]) -> None:
        """Runs a task, which raises no exception, on the PE's thread.

        Raises:
            Error: if the thread is closed, or this is a forked child.
        """
        if os.getpid() != self._process:
            raise _consort.Error(_FORKED)
        with self._lock:
            if self._is_closed:
                raise _consort.Error(_CLOSED)
            self._waiting += 1
            self._tasks.put(task)

    def take_turn(self) -> bool:
        """Gives the PE to the caller until `end_turn`, if no task waits and nobody else has it.

        Raises:
            Error: as `post`.
        """
        # A system call would take as long as the rest of this.
        if self._forks != _forks:
            raise _consort.Error(_FORKED)
        if not self._turn.acquire(blocking=False):
            return False
        # A task that another thread posts now may begin before or after the call of this thread.
        is_free = self._waiting == 0 and not self._is_closed
        if not is_free:
            self._turn.release()
            if self._is_closed:
                raise _consort.Error(_CLOSED)
        return is_free

    def end_turn(self) -> None:
        """Gives the PE back after `take_turn`."""
        self._turn.release()

    def call(self, function: Callable[..., _Result], *args: Any) -> _Result:
        """Calls a function, on this thread if it can be, and returns its result."""
        if self.is_current():
            return function(*args)
        if self.take_turn():
            try:
                return function(*args)
            finally:
                self.end_turn()
        future: Future[_Result] = Future()
        self.post(partial(_fill, future, function, args))
        try:
            return future.result()
        finally:
            del future  # a cycle with the traceback of its exception

    def is_current(self) -> bool:
        """Returns whether the calling thread is the PE's."""
        return threading.current_thread() is self._thread

    def fail(self, reason: str) -> None:
        """Fails the job. Calls that wait, here and in the other processes, raise `PeFailed`."""
        if os.getpid() == self._process:
            self.native.fail(reason)

    def close(self, timeout: float | None = None) -> None:
        """Ends the PE when the tasks are done, and waits until all PEs of the job have ended.

        Raises:
            TimeoutError: if that takes longer than `timeout` seconds.
        """
        if not self._stop():
            return
        try:
            self._ended.result(timeout)
        except KeyboardInterrupt:
            self.fail("KeyboardInterrupt")
            raise

    def abort(self, reason: str) -> None:
        """Fails the job, and ends the PE. Waits only if that takes no time."""
        if os.getpid() == self._process and not self._is_closed:
            self.fail(reason)
            with suppress(Exception):  # it is the failure, or the PE computes
                self.close(timeout=1.0)

    def leave(self) -> None:
        """Ends the PE when the tasks are done, and does not wait for the other PEs."""
        self._stop()

    def _stop(self) -> bool:
        """Posts the end of the PE. Returns false if it was posted before, or by another process."""
        if os.getpid() != self._process:
            return False
        with self._lock:
            is_first = not self._is_closed
            if is_first:
                self._is_closed = True
                self._tasks.put(None)
        return is_first

    def _exit(self) -> None:
        """Ends the PE at the end of the interpreter."""
        self._stop()
        if not self._begun.done():
            return
        # The exception that ends the interpreter, if one does. An interactive one has a prompt.
        error = getattr(sys, "last_value", None)
        if error is not None and not hasattr(sys, "ps1"):
            self.fail(reason_of(error))
        with suppress(Exception):  # it has been raised by calls
            self._ended.result()


def _fill(future: Future[_Result], function: Callable[..., _Result], args: tuple[Any, ...]) -> None:
    """Calls a function, and puts its result or exception into the future."""
    try:
        result = function(*args)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def reason_of(error: BaseException) -> str:
    """Returns the reason for which a job fails with an exception."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
