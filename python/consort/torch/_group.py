"""A group of processes, as `torch.distributed` uses it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

from .. import _consort
from .._pe_thread import PeThread
from ._messages import Messages, Receive
from ._tensors import (
    Operator,
    Target,
    array,
    blocks,
    check,
    check_alike,
    check_type,
    joined,
    named,
    operator,
    source,
)
from ._work import Started, Work

#: A call of a group's thread.
_Call = Callable[[_consort.Team], None]


class ProcessGroup(dist.ProcessGroup):
    """A group of processes whose collectives are those of Consort.

    The collectives of a group follow each other in the order in which the program starts them. The
    calling thread makes those that it would wait for, and another thread those with `async_op`. A
    third thread sends and receives, so that neither waits for the other.

    A call uses the memory of its tensors. Tensors that are not contiguous are copied. So are
    float16 and bfloat16 for averages. A list of tensors is copied, unless they follow each other in
    one memory as the chunks of a tensor do, because a team's calls take such blocks.
    """

    def __init__(self, store: dist.Store, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._name = ""
        self._place = (rank, size)
        self._limit = timeout.total_seconds()
        self._threads: list[PeThread] = []
        #: The handle of all calls that their callers have made. A handle takes longer than such a
        #: call.
        self._made = Work()
        try:
            for name in ("calls", "messages"):
                exchange = _Exchange(store, name, rank, size, timeout)
                self._threads.append(PeThread(rank, size, None, exchange, self._limit))
            self._limit_calls(timeout)
            self._messages: Messages = self._threads[1].call(Messages, self._threads[1])
        except BaseException:
            self.shutdown()
            raise

    def getBackendName(self) -> str:
        return "consort"

    def _set_group_name(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    # The property of the base class is that of a backend in C++.
    group_name = property(getGroupName)

    def rank(self) -> int:
        return self._place[0]

    def size(self) -> int:
        return self._place[1]

    def _get_backend(self, device: torch.device) -> ProcessGroup:
        return self

    def set_timeout(self, timeout: timedelta) -> None:
        """Limits the time of each later call."""
        self._limit_calls(timeout)

    def _limit_calls(self, timeout: timedelta) -> None:
        self._limit = timeout.total_seconds()
        self._threads[0].native.limit(self._limit)

    def shutdown(self) -> None:
        """Leaves the group when the started calls are complete, and does not wait for others."""
        for thread in self._threads:
            thread.leave()

    def abort(self) -> None:
        """Fails the group: calls that wait, on any process, raise `consort.PeFailed`."""
        for thread in self._threads:
            thread.fail("it has aborted the process group")
        self.shutdown()

    def __del__(self) -> None:
        # Threads that are left end with the interpreter.
        self.shutdown()

    def all_reduce(self, tensor: torch.Tensor, op: str = "sum") -> None:
        """Combines the tensors of all processes in place, by an operator of `consort.Team`.

        This is `torch.distributed.all_reduce` without torch's own steps, for programs in which
        many short calls take much of the time. It returns when the call is complete.

        Raises:
            Error: if the call fails.
            TimeoutError: if it takes longer than the timeout of the group.
            TypeError: if this is not a tensor.
            ValueError: if calls do not take the tensor, or the operator on its type.
        """
        check(tensor)
        of = named(op, tensor.dtype)
        self._make("all_reduce", [tensor], lambda native: _all_reduce(native, tensor, of))

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        tensor = _one(tensors)
        op = operator((opts or dist.AllreduceOptions()).reduceOp, tensor.dtype)
        return self._start(
            "all_reduce", tensors, lambda native: _all_reduce(native, tensor, op), opts
        )

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        of = (opts or dist.AllreduceOptions()).reduceOp
        ops = [_operator(of, tensor) for tensor in tensors]

        def call(native: _consort.Team) -> None:
            for op, tensor in zip(ops, tensors, strict=True):
                _all_reduce(native, tensor, op)

        return self._start("all_reduce", tensors, call, opts)

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Work:
        tensor, root = _one(tensors), opts.rootRank
        op = operator(opts.reduceOp, tensor.dtype)

        def call(native: _consort.Team) -> None:
            if native.rank == root:
                _move(native, "reduce", tensor, Target(tensor, op), op, root)
            else:
                native.collective("reduce", source(tensor, op), None, op.name, root)

        return self._start("reduce", tensors, call, opts)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Work:
        tensor, root = _one(tensors), opts.rootRank

        def call(native: _consort.Team) -> None:
            if native.rank == root:
                native.collective("broadcast", source(tensor), None, None, root)
                return
            target = Target(tensor)
            native.collective("broadcast", None, target.elements, None, root)
            target.finish(native.size)

        return self._start("broadcast", tensors, call, opts)

    def allgather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        given, received = _one(inputs), _only(outputs)
        self._check_blocks(received, given)

        def call(native: _consort.Team) -> None:
            _gather_in(native, "all_gather", given, received)

        return self._start("all_gather", outputs, call, opts)

    def allgather_coalesced(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        lists = [[of_rank[index] for of_rank in outputs] for index in range(len(inputs))]
        for given, received in zip(inputs, lists, strict=True):
            self._check_blocks(received, given)

        def call(native: _consort.Team) -> None:
            for given, received in zip(inputs, lists, strict=True):
                _gather_in(native, "all_gather", given, received)

        return self._start("all_gather", outputs, call, opts)

    def _allgather_base(self, output: torch.Tensor, given: torch.Tensor, opts: Any = None) -> Work:
        return self.allgather_into_tensor_coalesced([output], [given], opts)

    def allgather_into_tensor_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        for output, given in zip(outputs, inputs, strict=True):
            self._check_whole(output, given)

        def call(native: _consort.Team) -> None:
            for output, given in zip(outputs, inputs, strict=True):
                _move(native, "all_gather", given, Target(output))

        return self._start("all_gather", outputs, call, opts)

    def gather(
        self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any
    ) -> Work:
        given, root = _one(inputs), opts.rootRank
        received = _only(outputs) if self.rank() == root else []
        if self.rank() == root:
            self._check_blocks(received, given)

        def call(native: _consort.Team) -> None:
            if native.rank == root:
                _gather_in(native, "gather", given, received, root)
            else:
                native.collective("gather", source(given), None, None, root)

        return self._start("gather", outputs, call, opts)

    def scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any
    ) -> Work:
        output, root = _one(outputs), opts.rootRank
        given = _only(inputs) if self.rank() == root else []
        if self.rank() == root:
            self._check_blocks(given, output)

        def call(native: _consort.Team) -> None:
            target = Target(output)
            if native.rank == root:
                _move(native, "scatter", blocks(given), target, root=root)
                return
            native.collective("scatter", None, target.elements, None, root)
            target.finish(native.size)

        return self._start("scatter", outputs, call, opts)

    def reduce_scatter(
        self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None
    ) -> Work:
        output, given = _one(outputs), _only(inputs)
        self._check_blocks(given, output)
        op = _operator((opts or dist.ReduceScatterOptions()).reduceOp, output)

        def call(native: _consort.Team) -> None:
            _move(native, "reduce_scatter", blocks(given), Target(output, op), op)

        return self._start("reduce_scatter", outputs, call, opts)

    def _reduce_scatter_base(
        self, output: torch.Tensor, given: torch.Tensor, opts: Any = None
    ) -> Work:
        return self.reduce_scatter_tensor_coalesced([output], [given], opts)

    def reduce_scatter_tensor_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        of = (opts or dist.ReduceScatterOptions()).reduceOp
        ops = [_operator(of, output) for output in outputs]
        for output, given in zip(outputs, inputs, strict=True):
            self._check_whole(given, output)

        def call(native: _consort.Team) -> None:
            for output, given, op in zip(outputs, inputs, ops, strict=True):
                _move(native, "reduce_scatter", given, Target(output, op), op)

        return self._start("reduce_scatter", outputs, call, opts)

    def alltoall_base(
        self,
        output: torch.Tensor,
        given: torch.Tensor,
        output_lengths: list[int],
        lengths: list[int],
        opts: Any = None,
    ) -> Work:
        for tensor in (output, given):
            check(tensor)
        check_type(output, given)
        if not output_lengths and not lengths and output.numel() == given.numel():
            self._check_divisible(given)

            def call(native: _consort.Team) -> None:
                _move(native, "all_to_all", given, Target(output))

        else:
            ends = [self._ends(output, output_lengths), self._ends(given, lengths)]

            def call(native: _consort.Team) -> None:
                target, whole = Target(output), array(given)
                into = target.array()
                if np.may_share_memory(whole, into):
                    whole = whole.copy()
                received, sent = (
                    np.split(each, [end * each.size // max(of[-1], 1) for end in of[:-1]])
                    for each, of in zip((into, whole), ends, strict=True)
                )
                _exchange(native, sent, received)
                target.finish(native.size)

        return self._start("all_to_all", [output], call, opts)

    def alltoall(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        self._check_number(outputs)
        self._check_number(inputs)
        for tensor in (*outputs, *inputs):
            check(tensor)
            check_type(tensor, inputs[0])

        def call(native: _consort.Team) -> None:
            targets = [Target(output) for output in outputs]
            arrays = [target.array() for target in targets]
            sent = [array(each) for each in inputs]
            if any(np.may_share_memory(one, other) for one in sent for other in arrays):
                sent = [block.copy() for block in sent]
            _exchange(native, sent, arrays)
            for target in targets:
                target.finish(native.size)

        return self._start("all_to_all", outputs, call, opts)

    def gather_single(self, output: torch.Tensor, given: torch.Tensor, opts: Any) -> Work:
        root = opts.rootRank
        check(given)
        if self.rank() == root:
            self._check_whole(output, given)

        def call(native: _consort.Team) -> None:
            if native.rank == root:
                _move(native, "gather", given, Target(output), root=root)
            else:
                native.collective("gather", source(given), None, None, root)

        return self._start("gather", [output], call, opts)

    # Torch 2.15 has these names.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    all_to_all_single = alltoall_base
    gather_into_tensor = gather_single
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced

    def barrier(self, opts: Any = None) -> Work:
        return self._start("barrier", [], lambda native: native.barrier(), opts)

    def send(self, tensors: list[torch.Tensor], to: int, tag: int = 0) -> Work:
        tensor = _one(tensors)
        self._check_peer(to)
        work = Started(self._threads[1], "send", self._limit, tensors)

        def task() -> None:
            self._messages.send(array(tensor).view(np.uint8), to, tag, work)

        return self._post(work, task)

    def recv(self, tensors: list[torch.Tensor], origin: int, tag: int = 0) -> Work:
        self._check_peer(origin)
        return self._receive(_one(tensors), origin, tag)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Work:
        return self._receive(_one(tensors), None, tag)

    def _receive(self, tensor: torch.Tensor, origin: int | None, tag: int) -> Work:
        work = Started(self._threads[1], "receive", self._limit, [tensor])
        return self._post(work, lambda: self._messages.receive(Receive(origin, tag, tensor, work)))

    def _start(self, name: str, tensors: Any, call: _Call, opts: Any) -> Work:
        """Starts a call, whose result are these tensors, or makes it if the caller would wait."""
        if getattr(opts, "asyncOp", True):
            return self._post_call(name, tensors, call)
        try:
            self._make(name, tensors, call)
        except Exception as error:
            return Work(error)
        return self._made

    def _make(self, name: str, tensors: Any, call: _Call) -> None:
        """Makes a call, on this thread if no other call is pending."""
        thread = self._threads[0]
        if not thread.take_turn():
            self._post_call(name, tensors, call).wait()
            return
        try:
            call(thread.native)
        finally:
            thread.end_turn()

    def _post_call(self, name: str, tensors: Any, call: _Call) -> Work:
        """Makes a call on the thread of the calls."""
        thread = self._threads[0]
        work = Started(thread, name, self._limit, tensors)

        def task() -> None:
            call(thread.native)
            work.complete()

        return self._post(work, task)

    @staticmethod
    def _post(work: Started, task: Callable[[], None]) -> Work:
        """Runs a task for a work on its thread."""

        def run() -> None:
            try:
                task()
            except Exception as error:
                work.fail(error)

        work.thread.post(run)
        return work

    def _check_number(self, tensors: Sequence[torch.Tensor]) -> None:
        if len(tensors) != self.size():
            raise ValueError(
                f"the call takes a tensor for each of {self.size()} processes, not {len(tensors)}"
            )

    def _check_blocks(self, blocks: list[torch.Tensor], like: torch.Tensor) -> None:
        self._check_number(blocks)
        check(like)
        check_alike(blocks, like)

    def _check_whole(self, whole: torch.Tensor, block: torch.Tensor) -> None:
        check(whole)
        check(block)
        check_type(whole, block)
        if whole.numel() != block.numel() * self.size():
            raise ValueError(
                f"a tensor of {whole.numel()} elements is not that of {self.size()} processes with "
                f"{block.numel()} elements each"
            )

    def _check_divisible(self, tensor: torch.Tensor) -> None:
        rows = tensor.size(0) if tensor.dim() > 0 else 1
        if rows % self.size() != 0:
            raise ValueError(f"{rows} rows cannot be divided among {self.size()} processes")

    def _check_peer(self, peer: int) -> None:
        if not 0 <= peer < self.size() or peer == self.rank():
            raise ValueError(f"process {peer} is not another one of {self.size()} processes")

    def _ends(self, tensor: torch.Tensor, lengths: list[int]) -> list[int]:
        """Returns where the blocks of a tensor end, in rows."""
        rows = tensor.size(0) if tensor.dim() > 0 else 1
        if not lengths:
            self._check_divisible(tensor)
            lengths = [rows // self.size()] * self.size()
        if len(lengths) != self.size() or sum(lengths) != rows or min(lengths) < 0:
            raise ValueError(
                f"the lengths {lengths} do not divide {rows} rows among {self.size()} processes"
            )
        return list(itertools.accumulate(lengths))


class _Exchange:
    """Exchanges the bytes of the processes by their store."""

    def __init__(
        self, store: dist.Store, name: str, rank: int, size: int, timeout: timedelta
    ) -> None:
        self._store = store
        self._name = name
        self._rank = rank
        self._size = size
        self._timeout = timeout
        self._round = 0

    def __call__(self, own: bytes) -> list[bytes]:
        keys = [f"consort/{self._name}/{self._round}/{rank}" for rank in range(self._size)]
        self._round += 1
        self._store.set(keys[self._rank], own.hex())
        try:
            self._store.wait(keys, self._timeout)
        except Exception:
            missing = [rank for rank, key in enumerate(keys) if not self._store.check([key])]
            if not missing:
                raise
            raise TimeoutError(f"processes {missing} did not join") from None
        return [bytes.fromhex(self._store.get(key).decode()) for key in keys]


def _one(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Returns the only tensor of a process."""
    if len(tensors) != 1:
        raise ValueError(f"the call takes one tensor of each process, not {len(tensors)}")
    check(tensors[0])
    return tensors[0]


def _only(lists: list[list[torch.Tensor]]) -> list[torch.Tensor]:
    """Returns the only list of tensors of a process."""
    if len(lists) != 1:
        raise ValueError(f"the call takes one list of tensors of each process, not {len(lists)}")
    return lists[0]


def _operator(of: Any, tensor: torch.Tensor) -> Operator:
    check(tensor)
    return operator(of, tensor.dtype)


def _all_reduce(native: _consort.Team, tensor: torch.Tensor, op: Operator) -> None:
    target = Target(tensor, op)
    native.collective("all_reduce", None, target.elements, op.name)
    target.finish(native.size)


def _move(
    native: _consort.Team,
    call: str,
    given: torch.Tensor,
    target: Target,
    op: Operator | None = None,
    root: int = 0,
) -> None:
    """Makes a call on memory that may overlap."""
    elements = source(given, op)
    if elements.overlaps(target.elements):
        elements = source(given.detach().clone(), op)
    native.collective(call, elements, target.elements, op and op.name, root)
    target.finish(native.size)


def _gather_in(
    native: _consort.Team,
    call: str,
    tensor: torch.Tensor,
    received: list[torch.Tensor],
    root: int = 0,
) -> None:
    """Gathers tensors in a list."""
    whole = joined(received)
    if whole is not None:
        _move(native, call, tensor, Target(whole), root=root)
        return
    gathered = torch.empty((native.size, tensor.numel()), dtype=tensor.dtype, device="cpu")
    native.collective(call, source(tensor), Target(gathered).elements, None, root)
    for output, block in zip(received, gathered, strict=True):
        output.detach().copy_(block.reshape(output.shape))


def _exchange(native: _consort.Team, sent: list[np.ndarray], received: list[np.ndarray]) -> None:
    """Sends a block to each process, and receives one from each. Their lengths may differ."""
    rank, size = native.rank, native.size
    if sent[rank].size != received[rank].size:
        raise ValueError(
            f"a process sends itself {sent[rank].size} elements, and receives "
            f"{received[rank].size}: the lengths must be equal"
        )
    received[rank][:] = sent[rank]
    for step in range(1, size):
        to, origin = (rank + step) % size, (rank - step) % size
        native.send_receive(sent[to], to, received[origin], origin)
