"""Consort: self-tuning collectives for threads and processes.

`launch` runs a function on PEs (processing elements), which are threads, and gives each a `Team`:

>>> import numpy as np
>>> import consort
>>> def program(team):
...     mine = np.full(3, float(team.rank))
...     return team.all_reduce(mine, op="max")
>>> consort.launch(program, pes=4)[0]
array([3., 3., 3.])

With `processes=True`, the PEs are new processes. `attach` runs a function on processes that
something else has started; an `Attachment` keeps their team until it is closed.

`read_results` and `read_wisdom` read the output of the command `consort` as pandas data frames, and
`plot` draws them.
"""

from ._attachment import Attachment
from ._consort import VERSION, Error, Mismatched, PeFailed
from ._launch import launch
from ._memory import Memory
from ._plots import plot
from ._processes import attach
from ._request import Request
from ._results import ResultsError, read_results, read_wisdom
from ._team import Team

__version__ = VERSION

__all__ = [
    "Attachment",
    "Error",
    "Memory",
    "Mismatched",
    "PeFailed",
    "Request",
    "ResultsError",
    "Team",
    "attach",
    "launch",
    "plot",
    "read_results",
    "read_wisdom",
]
