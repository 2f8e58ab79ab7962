"""A process that is a PE of a job until it closes its attachment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from . import _consort
from ._pe_thread import PeThread, reason_of
from ._team import Team

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike


class Attachment:
    """This process as a PE of a job of processes, until it is closed.

    The processes meet as in `attach`, with the same arguments. While `attach` runs a function, an
    attachment is an object, for programs that keep a team: a notebook, a framework, a class.

    >>> import os, consort
    >>> with consort.Attachment(0, 1, name=f"alone-{os.getpid()}") as attached:
    ...     int(attached.team.all_reduce(7))
    7

    Any thread of this process may use the team; calls of several threads wait for each other.
    Nonblocking calls progress while the program does something else. Ctrl-C raises
    `KeyboardInterrupt` in a call that waits.

    `close` waits until all processes have closed theirs; so does the end of the interpreter. At the
    end of a `with` statement that raises an exception, and when an exception ends the interpreter,
    the job fails instead: calls of the others raise `PeFailed` with its text.

    Raises:
        ValueError, Error: as `attach`.
    """

    def __init__(
        self,
        rank: int | None = None,
        size: int | None = None,
        name: str | None = None,
        *,
        address: str | None = None,
        descriptor: FileDescriptorLike | None = None,
        all_gather: Callable[[bytes], Iterable[bytes]] | None = None,
        timeout: float = 60.0,
    ) -> None:
        self._thread = PeThread(rank, size, name, all_gather, timeout, address, descriptor)
        self._team = Team(cast(_consort.Team, _Remote(self._thread, self._thread.native)))

    @property
    def team(self) -> Team:
        """The team of all PEs of the job. After `close`, its calls raise an error."""
        return self._team

    def close(self) -> None:
        """Leaves the job, and waits until all its PEs have. Calling it again does nothing.

        Raises:
            PeFailed: if the job has failed.
            Mismatched: if another PE waits for a call that this PE has not made.
        """
        self._thread.close()

    def __enter__(self) -> Attachment:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
        else:
            self._thread.abort(reason_of(error))

    def __repr__(self) -> str:
        return f"<consort.Attachment: PE {self.team.rank} of {self.team.size}>"


class _Remote:
    """A team, a request or memory of the extension, whose methods the PE's thread calls."""

    __slots__ = ("_native", "_thread")

    def __init__(self, thread: PeThread, native: Any) -> None:
        self._thread = thread
        self._native = native

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._native, name)
        if not callable(found):
            return found
        return lambda *words: self._call(found, words)

    def _call(self, method: Callable[..., Any], words: tuple[Any, ...]) -> Any:
        thread = self._thread

        def on_thread() -> Any:
            result = method(*words)
            if isinstance(result, _consort.Request):
                thread.poll(lambda: _is_complete(result))
            return result

        result = thread.call(on_thread)
        if isinstance(result, (_consort.Team, _consort.Request, _consort.Memory)):
            return _Remote(thread, result)
        return result

    def __del__(self) -> None:
        native = self._native
        with suppress(_consort.Error):  # it was freed with the job
            # Only the PE's thread can free it, when it drops the task.
            self._thread.post(lambda: _forget(native))


def _forget(native: Any) -> None:
    """Does nothing with an object."""


def _is_complete(request: _consort.Request) -> bool:
    try:
        return request.test()
    except _consort.Error:
        return True  # the error is that of the next call, too
