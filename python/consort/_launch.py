"""Runs a function on PEs that are threads."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from . import _consort
from ._team import Team

_Result = TypeVar("_Result")


def launch(
    function: Callable[..., _Result],
    pes: int | None = None,
    args: Iterable[Any] = (),
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

    Ctrl-C raises `KeyboardInterrupt` in the PEs, and then in the caller. A PE that sleeps, or waits
    for something other than its team, gets the exception later; after a second Ctrl-C, `launch`
    does not wait for this PE.

    Raises:
        ValueError: if the number of PEs is invalid.
        Mismatched: if PEs make different calls, or wait for each other.
    """
    if not callable(function):
        raise TypeError(f"launch needs a function that takes a team, not {function!r}")
    number = _consort.cores() if pes is None else operator.index(pes)
    if not 0 < number < 2**32:
        raise ValueError(f"invalid number of PEs {number}: use 1 or more")

    def program(native: _consort.Team, *words: Any) -> _Result:
        return function(Team(native), *words)

    return _consort.launch(program, number, tuple(args))
