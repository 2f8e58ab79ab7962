"""Runs a function on PEs that are processes."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import pickle
import secrets
import signal
import threading
import time
import traceback
from collections.abc import Callable, Container, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import TYPE_CHECKING, Any, TypeVar

from . import _consort
from ._team import Team

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike

_Result = TypeVar("_Result")

#: The seconds that processes get to end after one of them has failed.
_GRACE = 1.0

#: The numbers of the launches of this process.
_numbers = itertools.count()


def attach(
    function: Callable[..., _Result],
    rank: int | None = None,
    size: int | None = None,
    name: str | None = None,
    args: Iterable[Any] = (),
    *,
    address: str | None = None,
    descriptor: FileDescriptorLike | None = None,
    all_gather: Callable[[bytes], Iterable[bytes]] | None = None,
    timeout: float = 60.0,
) -> _Result:
    """Runs `function(team, *args)` on this process, as a PE of a job of processes.

    Something else has started the processes: `multiprocessing`, `concurrent.futures`, a shell, a
    batch system. They are on one machine and belong to one user. Each calls this with its `rank`
    from 0 on, the same `size`, and the same `name` of 1 to 90 bytes, which no other job has. The
    call returns the function's result when the functions of all PEs have returned.

    >>> import os
    >>> attach(lambda team: int(team.all_reduce(7)), 0, 1, name=f"alone-{os.getpid()}")
    7

    Without rank, size and name, the variables of `torchrun` or Slurm's `srun` say them. Instead of
    a name, the processes may use one of these:

    - `address`, a TCP address of this machine, such as "127.0.0.1:29500": the first process listens
      there while the job runs. Processes of other users and machines are turned away.
    - `descriptor`, a pipe, socket or file that all have inherited and no other job has, or its
      number. The processes do not read it or write it.
    - `all_gather`, a function that gets the bytes of this process, and returns those of all
      processes, such as `allgather` of an mpi4py communicator.

    >>> receiver, sender = os.pipe()  # before other processes are forked
    >>> attach(lambda team: int(team.all_reduce(7)), 0, 1, descriptor=receiver)
    7

    The processes wait until all have come, for at most `timeout` seconds; `all_gather` limits its
    own time. Then they watch each other: if one is killed or raises an exception, the calls of the
    others raise `PeFailed` within a second, whose `pe_rank` is the PE that failed. No file is left
    behind.

    The function runs on a new thread of this process. A process may attach to other jobs, then or
    at the same time. If it forks, its child is not a PE: calls of the team raise an error there.

    Ctrl-C raises `KeyboardInterrupt` in the function, and then in the caller. While the processes
    wait for each other, it takes a second Ctrl-C.

    Raises:
        ValueError: if the rank or the size is invalid, or if they are missing, or if several ways
            to meet are given.
        Error: if the processes do not become one job. The message says why.
        PeFailed: if another process has failed.
        Mismatched: if PEs make different calls, or wait for each other.
    """
    if not callable(function):
        raise TypeError(f"attach needs a function that takes a team, not {function!r}")

    def program(native: _consort.Team, *words: Any) -> _Result:
        return function(Team(native), *words)

    words = tuple(args)
    ways = (name, address, descriptor, all_gather)
    result: _Result = _consort.attach(program, words, rank, size, *ways, timeout, False)
    return result


def launch(
    function: Callable[..., _Result], pes: int, args: tuple[Any, ...], method: str
) -> list[_Result]:
    """Runs `function(team, *args)` on `pes` new processes, and returns their results by rank."""
    context = multiprocessing.get_context(method)
    name = f"launch-{os.getpid()}-{next(_numbers)}-{secrets.token_hex(4)}"
    workers: list[BaseProcess] = []
    receivers: list[Connection] = []
    results: dict[int, _Result] = {}
    failed: dict[int, BaseException] = {}
    try:
        for rank in range(pes):
            worker, receiver = _start(context, rank, (rank, pes, name, function, args))
            workers.append(worker)
            receivers.append(receiver)
        for rank, outcome in _outcomes(workers, receivers):
            if isinstance(outcome, BaseException):
                failed[rank] = outcome
            else:
                (results[rank],) = outcome
    finally:
        _end(workers, {*results, *failed}, 0 if failed else _GRACE)
        for receiver in receivers:
            receiver.close()
    if failed:
        raise min(failed.items(), key=lambda one: _order(*one))[1]
    return [results[rank] for rank in range(pes)]


def _start(context: Any, rank: int, words: tuple[Any, ...]) -> tuple[BaseProcess, Connection]:
    """Starts a process. The connection ends when the process does."""
    receiver, sender = context.Pipe(duplex=False)
    with sender:
        worker = context.Process(target=_work, args=(sender, *words), name=f"PE {rank}")
        worker.start()
    return worker, receiver


def _work(
    sender: Connection,
    rank: int,
    pes: int,
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
) -> None:
    """Runs the function as one of the processes of a launch, and sends its result or exception."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The end of this process ends the connection, unless a child has a copy.
    os.register_at_fork(after_in_child=sender.close)
    try:
        # It has no limit: the launch ends this process when another one does not join.
        result = attach(function, rank, pes, name, args, timeout=float("inf"))
        try:
            outcome = pickle.dumps((result,))
        except Exception as error:
            raise TypeError(f"PE {rank} cannot send its result: {error}") from error
    except BaseException as error:
        outcome = _pickled(error)
    sender.send_bytes(outcome)


def _end_with_parent() -> None:
    """Ends this process when the process that has launched it ends."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


def _pickled(error: BaseException) -> bytes:
    """Pickles an exception, or only its text if it cannot be pickled, with its traceback as a note.

    The outcome of a process is this pair of an exception and its attributes, or a tuple of one
    result.
    """
    note = "".join(traceback.format_exception(error))
    # Not all exceptions pickle their attributes.
    known = {"__notes__": [*getattr(error, "__notes__", []), note]}
    if hasattr(error, "pe_rank"):
        known["pe_rank"] = error.pe_rank
    try:
        outcome = pickle.dumps((error, known))
        pickle.loads(outcome)
        return outcome
    except Exception:
        return pickle.dumps((_consort.Error(f"{type(error).__name__}: {error}"), known))


def _outcomes(workers: list[BaseProcess], receivers: list[Connection]) -> Iterator[tuple[int, Any]]:
    """Yields the ranks of the processes, each with a tuple of its result, or with its exception.

    After the first failure, the others get some time to end. Those that do not are left out.
    """
    left = {receiver: rank for rank, receiver in enumerate(receivers)}
    until = None
    while left:
        ready = wait(list(left), None if until is None else max(until - time.monotonic(), 0))
        if not ready:
            return
        for receiver in ready:
            assert isinstance(receiver, Connection)
            rank = left.pop(receiver)
            outcome = _received(receiver) or _ended(rank, workers[rank])
            yield rank, outcome
            # An exception of another process follows that one's outcome, which is yet to come.
            if until is None and isinstance(outcome, BaseException) and _order(rank, outcome) < 2:
                until = time.monotonic() + _GRACE


def _received(receiver: Connection) -> Any:
    """Returns the outcome that a process has sent; `None` if it has ended without one."""
    try:
        data = receiver.recv_bytes()
    except (EOFError, OSError):
        return None
    outcome = pickle.loads(data)
    if len(outcome) == 1:
        return outcome
    error, known = outcome
    vars(error).update(known)
    return error


def _ended(rank: int, worker: BaseProcess) -> _consort.PeFailed:
    """Returns the exception for a process that has ended without a result."""
    worker.join()
    code = worker.exitcode
    assert code is not None
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with code {code}"
    error = _consort.PeFailed(f"PE {rank} failed: its process {how}")
    error.pe_rank = rank
    return error


def _order(rank: int, error: BaseException) -> int:
    """Orders exceptions: those of their own process, of no known process, of another process."""
    failed = getattr(error, "pe_rank", None)
    return 0 if failed == rank else 1 if failed is None else 2


def _end(workers: list[BaseProcess], ended: Container[int], grace: float) -> None:
    """Waits for all processes. Those whose ranks have not ended get some seconds to do so."""
    until = time.monotonic() + grace
    for rank, worker in enumerate(workers):
        if rank not in ended:
            worker.join(max(until - time.monotonic(), 0))
            worker.kill()
    for worker in workers:
        worker.join()
        worker.close()
