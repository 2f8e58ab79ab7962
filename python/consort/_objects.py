"""Objects of Python as bytes, which PEs send each other."""

from __future__ import annotations

import pickle
from typing import Any

from . import _consort


class _Unsent:
    """Stands for an object that is not sent, so that its receivers do not wait for it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


#: The bytes that are sent for an object, and why the object itself is not, if it is not.
Pickled = tuple[bytes, Exception | None]


def unsent(reason: str) -> bytes:
    """Returns the bytes for receivers of an object that is not sent for this reason."""
    return pickle.dumps(_Unsent(reason))


def pickled(value: Any, rank: int) -> Pickled:
    """Returns the bytes of an object of PE `rank`, and why it cannot be pickled, if it cannot."""
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL), None
    except Exception as error:  # any one, because objects define how they are pickled
        reason = f"PE {rank} cannot send its object: {error}"
        refused = TypeError(reason)
        refused.__cause__ = error
        return unsent(reason), refused


def unpickled(data: Any) -> Any:
    """Returns a copy of the object with these bytes.

    Raises:
        Error: if its PE has not sent it, because it could not be pickled or was missing.
    """
    value = pickle.loads(data)
    if isinstance(value, _Unsent):
        raise _consort.Error(value.reason)
    return value
