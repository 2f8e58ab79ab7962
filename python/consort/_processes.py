"""Runs a function on PEs that are processes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from . import _consort
from ._team import Team

_Result = TypeVar("_Result")


def attach(
    function: Callable[..., _Result],
    rank: int | None = None,
    size: int | None = None,
    name: str | None = None,
    args: Iterable[Any] = (),
    *,
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
    a name, `all_gather` may exchange bytes: it gets those of this process, and returns those of all
    processes, such as `allgather` of an mpi4py communicator.

    The processes wait until all have come, for at most `timeout` seconds; `all_gather` limits its
    own time. Then they watch each other: if one is killed or raises an exception, the calls of the
    others raise `PeFailed` within a second, whose `pe_rank` is the PE that failed. No file is left
    behind.

    The function runs on a new thread of this process. A process may attach to other jobs, then or
    at the same time. If it forks, its child is not a PE: calls of the team raise an error there.

    Ctrl-C raises `KeyboardInterrupt` in the function, and then in the caller. While the processes
    wait for each other, it takes a second Ctrl-C.

    Raises:
        ValueError: if the rank or the size is invalid, or if they are missing.
        Error: if the processes do not become one job. The message says why.
        PeFailed: if another process has failed.
        Mismatched: if PEs make different calls, or wait for each other.
    """
    if not callable(function):
        raise TypeError(f"attach needs a function that takes a team, not {function!r}")

    def program(native: _consort.Team, *words: Any) -> _Result:
        return function(Team(native), *words)

    words = tuple(args)
    result: _Result = _consort.attach(program, words, rank, size, name, all_gather, timeout)
    return result
