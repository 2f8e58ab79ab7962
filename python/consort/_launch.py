"""Runs a function on new PEs: threads, or processes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from . import _consort, _processes
from ._team import Team

_Result = TypeVar("_Result")


def launch(
    function: Callable[..., _Result],
    pes: int | None = None,
    args: Iterable[Any] = (),
    processes: bool | str = False,
) -> list[_Result]:
    """Runs `function(team, *args)` on `pes` PEs, and returns their results by rank.

    Each PE is a thread of this process. The default is one PE for each usable core. A PE holds the
    interpreter's lock while it runs Python code, but not during a call of its team or in NumPy's
    loops.

    >>> launch(lambda team: team.rank * 10, pes=3)
    [0, 10, 20]
    >>> launch(lambda team, scale: team.scan(scale), pes=3, args=(2,))
    [np.int64(2), np.int64(4), np.int64(6)]

    When a PE raises an exception, the calls of the others raise `PeFailed`, and `launch` raises
    the first PE's exception, with a note and an attribute `pe_rank`:

    >>> def divides(team):
    ...     team.barrier()
    ...     return 1 // (team.rank - 1)
    >>> try:
    ...     launch(divides, pes=2)
    ... except ZeroDivisionError as error:
    ...     print(error.pe_rank, error.__notes__)
    1 ['raised by PE 1 of 2']

    With `processes`, each PE is a new process of this machine instead, so PEs run Python code at
    the same time. They use copies of the data of this process, and `pickle` copies the results:

    >>> launch(lambda team: (team.rank, team.size), pes=2, processes=True)
    [(0, 2), (1, 2)]

    `True` forks this process, which takes milliseconds, and the function may be a lambda or a
    closure. Do this while this process has no other threads: a fork does not copy them, but it
    copies the locks that they hold. `"spawn"` and `"forkserver"` start new interpreters, as
    `multiprocessing` does: `pickle` then copies the function and its arguments too, and a program
    needs `if __name__ == "__main__"`.

    The exception of a process has its traceback as a note. If a process is killed or exits,
    `launch` raises `PeFailed`. One second after the first failure, it ends the processes that still
    run. They also end if this process is killed.

    Ctrl-C raises `KeyboardInterrupt` in the PEs, and then in the caller. A PE that sleeps, or waits
    for something other than its team, gets the exception later; after a second Ctrl-C, `launch`
    does not wait for this PE.

    Raises:
        ValueError: if the number of PEs is invalid, or the start method is unknown.
        PeFailed: if a process is killed or exits.
        Mismatched: if PEs make different calls, or wait for each other.
    """
    if not callable(function):
        raise TypeError(f"launch needs a function that takes a team, not {function!r}")
    number = _consort.cores() if pes is None else operator.index(pes)
    if not 0 < number < 2**32:
        raise ValueError(f"invalid number of PEs {number}: use 1 or more")
    if processes:
        method = "fork" if processes is True else processes
        return _processes.launch(function, number, tuple(args), method)

    def program(native: _consort.Team, *words: Any) -> _Result:
        return function(Team(native), *words)

    return _consort.launch(program, number, tuple(args))
