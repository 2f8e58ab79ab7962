"""A team of PEs and its collectives."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _consort
from ._arrays import blocks, given, result, target, writable
from ._memory import Memory
from ._objects import Pickled, pickled, unpickled, unsent
from ._request import Request

#: The maximum number of axes of an array.
_MOST_AXES = 64


class Team:
    """A team of PEs, as one of them sees it.

    All PEs of a team make its calls, in the same order, with the same root, operator, type and
    length; otherwise they get `Mismatched`. Only the thread of its PE uses a team, during `launch`
    or `attach`; any thread uses that of an `Attachment`, until it is closed.

    Calls take arrays of float16, bfloat16 (of the package ml_dtypes), float32, float64, complex64,
    complex128, integers of 8 to 64 bits and bool, contiguous in C order. They also take numbers,
    and then return numbers. `out` is an array for the result, which the call then returns. Where
    `out` may be the given array, either all PEs do this or none.

    An array may be an object that shares its memory by DLPack or as a buffer, such as a tensor of
    PyTorch in the processor's memory or a `memoryview`. Calls use this memory without a copy. New
    results are NumPy's arrays, which such packages use without a copy too.

    The operators are "sum", "product", "min" and "max"; for integers and bool also "and", "or" and
    "xor". bool has no "sum" and no "product", and complex numbers have no "min" and no "max".
    Integers wrap around, and "min" and "max" prefer numbers to NaN. Sums and products of float16
    and bfloat16 are computed in float32 and rounded once.

    The calls whose names end in `object` or `objects` take any object that `pickle` can copy. They
    are slower than those on arrays.

    During a call, nothing else may change its arrays. Calls of other PEs that would change them
    raise an error, but other threads of the program are not stopped.
    """

    __slots__ = ("_native",)

    def __init__(self, native: _consort.Team) -> None:
        self._native = native

    @property
    def rank(self) -> int:
        """This PE's rank, from 0 on."""
        return self._native.rank

    @property
    def size(self) -> int:
        """The number of PEs."""
        return self._native.size

    def __repr__(self) -> str:
        return f"<consort.Team: PE {self.rank} of {self.size}>"

    def barrier(self) -> None:
        """Waits until all PEs have called this."""
        self._native.barrier()

    def broadcast(self, array: ArrayLike, root: int = 0) -> Any:
        """Copies the root's array to the arrays of the other PEs, and returns it on all PEs.

        >>> import consort
        >>> consort.launch(lambda team: team.broadcast(team.rank + 0.5, root=1), pes=3)
        [np.float64(1.5), np.float64(1.5), np.float64(1.5)]
        """
        data, was_array = given(array)
        self._move("broadcast", data, data, root)
        return result(data, was_array, array if was_array else None)

    def reduce(self, array: ArrayLike, op: str = "sum", root: int = 0, out: Any = None) -> Any:
        """Combines the arrays of all PEs element by element, on the root; others get None.

        Only the root's `out` is used, unless it is the given array.

        >>> import consort
        >>> consort.launch(lambda team: team.reduce(team.rank + 1, op="product"), pes=4)
        [np.int64(24), None, None, None]
        """
        source, was_array = given(array)
        is_root = self.rank == root
        if was_array and out is array:
            self._native.collective("reduce", None, source, op, root)
            return out if is_root else None
        received = target(out, source.shape, source.dtype) if is_root else None
        self._native.collective("reduce", source, received, op, root)
        return None if received is None else result(received, was_array, out)

    def all_reduce(self, array: ArrayLike, op: str = "sum", out: Any = None) -> Any:
        """Combines the arrays of all PEs, on all PEs. `out` may be the given array.

        >>> import consort, numpy
        >>> consort.launch(lambda team: team.all_reduce(numpy.arange(3) * team.rank), pes=3)[0]
        array([0, 3, 6])
        """
        return self._combined("all_reduce", array, op, out)

    def scan(self, array: ArrayLike, op: str = "sum", out: Any = None) -> Any:
        """Combines the arrays of the PEs up to this one. `out` may be the given array.

        >>> import consort
        >>> consort.launch(lambda team: int(team.scan(10)), pes=3)
        [10, 20, 30]
        """
        return self._combined("scan", array, op, out)

    def exclusive_scan(self, array: ArrayLike, op: str = "sum", out: Any = None) -> Any:
        """Combines the arrays of the PEs before this one. PE 0 gets None, or `out` unchanged.

        >>> import consort
        >>> consort.launch(lambda team: team.exclusive_scan(100), pes=3)
        [None, np.int64(100), np.int64(200)]
        """
        source, was_array = given(array)
        received = target(out, source.shape, source.dtype)
        if was_array and out is array:
            source = source.copy()
        self._native.collective("exclusive_scan", source, received, op)
        if self.rank == 0 and out is None:
            return None
        return result(received, was_array, out)

    def reduce_scatter(self, array: ArrayLike, op: str = "sum", out: Any = None) -> Any:
        """Combines arrays with a block for each PE, and returns this PE's block.

        >>> import consort, numpy
        >>> consort.launch(lambda team: team.reduce_scatter(numpy.ones((2, 3))), pes=2)[1]
        array([2., 2., 2.])
        """
        source, _ = given(array)
        block = blocks(source, self.size, "reduce_scatter")
        received = target(out, block, source.dtype)
        self._native.collective("reduce_scatter", source, received, op)
        return result(received, False, out)

    def gather(self, array: ArrayLike, root: int = 0, out: Any = None) -> Any:
        """Stacks the arrays of all PEs on a new first axis, by rank, on the root; others get None.

        >>> import consort
        >>> consort.launch(lambda team: team.gather(team.rank), pes=3)
        [array([0, 1, 2]), None, None]
        """
        source, _ = given(array)
        received = None
        if self.rank == root:
            received = target(out, (self.size, *source.shape), source.dtype)
        self._native.collective("gather", source, received, None, root)
        return received if out is None or received is None else out

    def all_gather(self, array: ArrayLike, out: Any = None) -> Any:
        """Stacks the arrays of all PEs on a new first axis, by rank, on all PEs.

        >>> import consort
        >>> consort.launch(lambda team: team.all_gather(team.rank), pes=3)[2]
        array([0, 1, 2])
        """
        source, _ = given(array)
        received = target(out, (self.size, *source.shape), source.dtype)
        self._native.collective("all_gather", source, received)
        return received if out is None else out

    def scatter(self, array: ArrayLike | None = None, root: int = 0, out: Any = None) -> Any:
        """Returns this PE's block of the root's array: one for each PE along the first axis.

        Only the root passes an array. Either all PEs pass `out` or none. If none does, the root
        first broadcasts the type and the shape in a separate call.

        >>> import consort, numpy
        >>> def program(team):
        ...     return team.scatter(numpy.arange(6).reshape(3, 2) if team.rank == 0 else None)
        >>> consort.launch(program, pes=3)[2]
        array([4, 5])
        """
        source, block = None, None
        if self.rank == root:
            if array is None:
                raise TypeError("the root of a scatter must pass an array")
            source, _ = given(array)
            block = (blocks(source, self.size, "scatter"), source.dtype)
        if out is None:
            block = self._shape_of_root(block, root)
        elif block is None:
            like = writable(out)
            block = (like.shape, like.dtype)
        received = target(out, *block)
        self._native.collective("scatter", source, received, None, root)
        return result(received, False, out)

    def all_to_all(self, array: ArrayLike, out: Any = None) -> Any:
        """Returns, from the array of every PE, the block for this PE. `out` may be the given array.

        >>> import consort, numpy
        >>> consort.launch(lambda team: team.all_to_all(numpy.full(3, team.rank)), pes=3)[0]
        array([0, 1, 2])
        """
        source, was_array = given(array)
        blocks(source, self.size, "all_to_all")
        received = target(out, source.shape, source.dtype)
        if was_array and out is array:
            source = source.copy()
        self._native.collective("all_to_all", source, received)
        return received if out is None else out

    def start_barrier(self) -> Request:
        """Starts a barrier, which is complete when all PEs have started it."""
        return Request(self._native.start_barrier(), None)

    def start_broadcast(self, array: ArrayLike, root: int = 0) -> Request:
        """Starts a broadcast. The result is a new array."""
        return self._start("broadcast", array, None, root, lambda shape: shape)

    def start_reduce(self, array: ArrayLike, op: str = "sum", root: int = 0) -> Request:
        """Starts a reduction. The root gets the result."""
        return self._start("reduce", array, op, root, lambda shape: shape)

    def start_all_reduce(self, array: ArrayLike, op: str = "sum") -> Request:
        """Starts an all-reduce.

        The call copies the array, so you may change it at once. The call progresses while this PE
        is in any call of a team, or in `progress`.

        >>> import consort
        >>> def program(team):
        ...     request = team.start_all_reduce(team.rank)
        ...     team.barrier()  # or anything that does not need the sum
        ...     return int(request.wait())
        >>> consort.launch(program, pes=4)
        [6, 6, 6, 6]
        """
        return self._start("all_reduce", array, op, 0, lambda shape: shape)

    def start_scan(self, array: ArrayLike, op: str = "sum") -> Request:
        """Starts an inclusive scan."""
        return self._start("scan", array, op, 0, lambda shape: shape)

    def start_exclusive_scan(self, array: ArrayLike, op: str = "sum") -> Request:
        """Starts an exclusive scan. PE 0 gets no result."""
        return self._start("exclusive_scan", array, op, 0, lambda shape: shape)

    def start_reduce_scatter(self, array: ArrayLike, op: str = "sum") -> Request:
        """Starts a reduce-scatter of an array with a block for each PE."""
        source, _ = given(array)
        blocks(source, self.size, "reduce_scatter")
        return self._start("reduce_scatter", source, op, 0, lambda shape: shape[1:])

    def start_gather(self, array: ArrayLike, root: int = 0) -> Request:
        """Starts a gather. The root gets the result."""
        return self._start("gather", array, None, root, lambda shape: (self.size, *shape))

    def start_scatter(
        self,
        array: ArrayLike | None = None,
        root: int = 0,
        *,
        shape: int | tuple[int, ...] = (),
        dtype: DTypeLike = float,
    ) -> Request:
        """Starts a scatter. The root passes an array with a block for each PE.

        The other PEs pass the shape and the type of a block.

        >>> import consort, numpy
        >>> def program(team):
        ...     if team.rank == 0:
        ...         return team.start_scatter(numpy.arange(6).reshape(3, 2)).wait()
        ...     return team.start_scatter(shape=2, dtype=int).wait()
        >>> consort.launch(program, pes=3)[2]
        array([4, 5])
        """
        if self.rank != root:
            block = _shape(shape)
            source = np.empty(0, np.dtype(dtype))
        elif array is None:
            raise TypeError("the root of a scatter must pass an array")
        else:
            source, _ = given(array)
            block = blocks(source, self.size, "scatter")
        length = math.prod(block)
        return Request(self._native.start("scatter", source, length, None, root), block)

    def start_all_gather(self, array: ArrayLike) -> Request:
        """Starts an all-gather."""
        return self._start("all_gather", array, None, 0, lambda shape: (self.size, *shape))

    def start_all_to_all(self, array: ArrayLike) -> Request:
        """Starts an all-to-all of an array with a block for each PE."""
        source, _ = given(array)
        blocks(source, self.size, "all_to_all")
        return self._start("all_to_all", source, None, 0, lambda shape: shape)

    def send(self, array: ArrayLike, to: int) -> None:
        """Sends an array to PE `to`, which calls `receive`. The other PEs make no call.

        A PE receives messages in the order in which they were sent. A send of up to 64 KiB does not
        wait for its receiver. If two PEs send each other longer messages, one must receive first.

        >>> import consort, numpy
        >>> def program(team):
        ...     team.send(numpy.arange(3) + team.rank, to=1 - team.rank)
        ...     return team.receive(numpy.zeros(3, int), source=1 - team.rank)
        >>> consort.launch(program, pes=2)
        [array([1, 2, 3]), array([0, 1, 2])]
        """
        self._native.send(given(array)[0], to)

    def receive(self, out: Any, source: int) -> Any:
        """Receives an array of PE `source` into `out`, of the same length and type; returns it."""
        self._native.receive(writable(out), source)
        return out

    def send_receive(self, array: ArrayLike, to: int, out: Any, source: int) -> Any:
        """Sends an array and at the same time receives one of any length into `out`."""
        self._native.send_receive(given(array)[0], to, writable(out), source)
        return out

    def start_send(self, array: ArrayLike, to: int) -> Request:
        """Starts sending a copy of an array."""
        return Request(self._native.start_send(given(array)[0], to), None)

    def start_receive(
        self, source: int, shape: int | tuple[int, ...], dtype: DTypeLike = float
    ) -> Request:
        """Starts receiving an array of this shape and type. The array is the result."""
        axes = _shape(shape)
        like = np.empty(0, np.dtype(dtype))
        return Request(self._native.start_receive(source, like, math.prod(axes)), axes, True)

    def broadcast_object(self, value: Any = None, root: int = 0) -> Any:
        """Returns the root's object on all PEs: on the root itself, and elsewhere a copy.

        >>> import consort
        >>> def program(team):
        ...     return team.broadcast_object({"seed": 7} if team.rank == 0 else None)
        >>> consort.launch(program, pes=2)
        [{'seed': 7}, {'seed': 7}]

        In all calls on objects, `pickle` makes the copies, also between threads. If it cannot copy
        an object, the PE that has the object raises `TypeError`, and each PE that should receive
        it raises `Error` with the same text. Then the call is over, and all PEs may make others.
        In `send_object`, the receiver still waits for an object. If a PE cannot unpickle an object,
        for instance because it cannot import its class, only this PE raises an exception.
        """
        if self.rank != root:
            return unpickled(self._native.broadcast_bytes(b"", root))
        data, refused = pickled(value, self.rank)
        self._native.broadcast_bytes(data, root)
        if refused is not None:
            raise refused
        return value

    def gather_objects(self, value: Any, root: int = 0) -> list[Any] | None:
        """Returns copies of the objects of all PEs, by rank, on the root; others get None.

        >>> import consort
        >>> consort.launch(lambda team: team.gather_objects("ab" * team.rank), pes=3)
        [['', 'ab', 'abab'], None, None]
        """
        return self._gathered(value, root)

    def all_gather_objects(self, value: Any) -> list[Any]:
        """Returns copies of the objects of all PEs, by rank, on all PEs.

        >>> import consort
        >>> consort.launch(lambda team: team.all_gather_objects((team.rank, "x")), pes=2)[1]
        [(0, 'x'), (1, 'x')]
        """
        return self._gathered(value, None) or []

    def scatter_objects(self, values: Iterable[Any] | None = None, root: int = 0) -> Any:
        """Returns a copy of this PE's object. The root passes one object for each PE.

        >>> import consort
        >>> def program(team):
        ...     return team.scatter_objects(["a", 2, None] if team.rank == 0 else None)
        >>> consort.launch(program, pes=3)
        ['a', 2, None]
        """
        if self.rank != root:
            return unpickled(self._native.scatter_bytes(b"", [], root))
        try:
            each = self._pickled_for_each(values)
        except Exception as error:  # any one, because iterating may raise it
            each = [(unsent(f"PE {root} scatters nothing: {error}"), error)] * self.size
        parts = [data for data, _ in each]
        own = self._native.scatter_bytes(b"".join(parts), [len(data) for data in parts], root)
        for _, refused in each:
            if refused is not None:
                raise refused
        return unpickled(own)

    def send_object(self, value: Any, to: int) -> None:
        """Sends a copy of an object to PE `to`, which calls `receive_object`.

        Messages of `send` and `send_object` to one PE arrive in order. Like `send`, it does not
        wait if the pickled object has at most 64 KiB, but an object counts as two messages.

        >>> import consort
        >>> def program(team):
        ...     if team.rank == 0:
        ...         return team.send_object({"lr": 0.1}, to=1)
        ...     return team.receive_object(source=0)
        >>> consort.launch(program, pes=2)
        [None, {'lr': 0.1}]
        """
        data, refused = pickled(value, self.rank)
        if refused is not None:
            raise refused
        self._native.send_bytes(data, to)

    def receive_object(self, source: int) -> Any:
        """Returns a copy of the object that PE `source` sends by `send_object`."""
        return unpickled(self._native.receive_bytes(source))

    def progress(self) -> None:
        """Progresses the calls that this PE has started, without waiting."""
        self._native.progress()

    def split(self, color: int | None, key: int = 0) -> Team | None:
        """Returns the team of the PEs with the same colour, ordered by key and then by rank.

        A PE that passes None gets None. `free` frees the team's memory.

        >>> import consort
        >>> def program(team):
        ...     part = team.split(team.rank % 2)
        ...     return part.size, int(part.all_reduce(team.rank))
        >>> consort.launch(program, pes=5)
        [(3, 6), (2, 4), (3, 6), (2, 4), (3, 6)]
        """
        if color is not None and not 0 <= color < 2**32:
            raise ValueError(f"invalid colour {color}: use a number from 0 to {2**32 - 1}, or None")
        native = self._native.split(color, key)
        return None if native is None else Team(native)

    def free(self) -> None:
        """Frees a team that `split` has made. All PEs of the team call this."""
        self._native.free()

    def symmetric(self, shape: int | tuple[int, ...], dtype: DTypeLike = float) -> Memory:
        """Allocates memory of zeroed elements on every PE, for puts and gets of all PEs.

        >>> import consort, numpy
        >>> def program(team):
        ...     memory = team.symmetric(4, dtype="int64")
        ...     memory.put(numpy.full(4, team.rank), to=(team.rank + 1) % team.size)
        ...     memory.quiet()
        ...     team.barrier()
        ...     return memory.get(team.rank, first=1, count=2)
        >>> consort.launch(program, pes=3)[0]
        array([2, 2])

        Its `array` is this PE's part:

        >>> def program(team):
        ...     mine = team.symmetric((2, 3)).array
        ...     mine[:] = team.rank
        ...     return team.all_reduce(mine, out=mine)[1]
        >>> consort.launch(program, pes=3)[0]
        array([3., 3., 3.])
        """
        axes, of = _shape(shape), np.dtype(dtype)
        native = self._native.symmetric(np.empty(0, of), math.prod(axes))
        return Memory(native, axes, of, self.rank)

    def _move(self, call: str, source: np.ndarray, received: np.ndarray, root: int) -> None:
        """Makes a call in which the root has the source and the other PEs have the target."""
        if self.rank == root:
            self._native.collective(call, source, None, None, root)
        else:
            self._native.collective(call, None, received, None, root)

    def _pickled_for_each(self, values: Iterable[Any] | None) -> list[Pickled]:
        """Returns the bytes of an object for each PE, or why it cannot be pickled."""
        if values is None:
            raise TypeError("the root of a scatter must pass an object for each PE")
        each = [pickled(value, self.rank) for value in values]
        if len(each) != self.size:
            raise ValueError(
                f"the root of a scatter among {self.size} PEs passes {len(each)} objects: pass one "
                "for each PE"
            )
        return each

    def _gathered(self, value: Any, root: int | None) -> list[Any] | None:
        """Returns the objects of all PEs on the root, or on all PEs if there is none."""
        data, refused = pickled(value, self.rank)
        gathered = self._native.gather_bytes(data, root)
        if refused is not None:
            raise refused
        if gathered is None:
            return None
        whole, ends = gathered
        return [unpickled(whole[first:end]) for first, end in pairwise([0, *ends])]

    def _combined(self, call: str, array: ArrayLike, op: str, out: np.ndarray | None) -> Any:
        source, was_array = given(array)
        if was_array and out is array:
            self._native.collective(call, None, source, op)
            return out
        received = target(out, source.shape, source.dtype)
        self._native.collective(call, source, received, op)
        return result(received, was_array, out)

    def _start(
        self, call: str, array: ArrayLike, op: str | None, root: int, shaped: Any
    ) -> Request:
        source, was_array = given(array)
        shape = shaped(source.shape)
        return Request(self._native.start(call, source, source.size, op, root), shape, was_array)

    def _shape_of_root(
        self, block: tuple[tuple[int, ...], np.dtype] | None, root: int
    ) -> tuple[tuple[int, ...], np.dtype]:
        """Returns the root's shape and type on all PEs."""
        name, words = np.zeros(1, "S16"), np.zeros(_MOST_AXES + 1, np.int64)
        if block is not None:
            shape, of = block
            name[0], words[0] = of.name, len(shape)
            words[1 : 1 + len(shape)] = shape
        words = np.concatenate([name.view(np.int64), words])
        self._move("broadcast", words, words, root)
        axes = words[2]
        of = np.dtype(words[:2].view("S16")[0].decode())
        return tuple(words[3 : 3 + axes].tolist()), of


def _shape(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """Returns a shape, of one axis if it is a number."""
    return (shape,) if isinstance(shape, int) else tuple(shape)
