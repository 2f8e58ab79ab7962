"""The memory of tensors for calls, and the operators of torch as those of a team."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.distributed as dist

from .. import _consort


class Operator(NamedTuple):
    """An operator of a team for one of torch."""

    name: str
    #: Whether the result is divided by the number of processes.
    is_average: bool = False


#: The operators of torch, and those of a team.
_OPERATORS = (
    (dist.ReduceOp.SUM, Operator("sum")),
    (dist.ReduceOp.AVG, Operator("sum", is_average=True)),
    (dist.ReduceOp.PRODUCT, Operator("product")),
    (dist.ReduceOp.MIN, Operator("min")),
    (dist.ReduceOp.MAX, Operator("max")),
    (dist.ReduceOp.BAND, Operator("and")),
    (dist.ReduceOp.BOR, Operator("or")),
    (dist.ReduceOp.BXOR, Operator("xor")),
)

#: The operators on bool for those that bool does not have: true is 1, and 1 + 1 is true.
_OF_BOOL = {"sum": "or", "product": "and"}

_FLOATS = {torch.float32, torch.float64}

#: The floats that a team combines in float32. Averages of them are combined as float32.
_NARROW = {torch.float16, torch.bfloat16}

_INTEGERS = {
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
}

#: The types whose elements are moved as they are. Those of others are moved as integers of their
#: size.
_NATIVE = _FLOATS | _INTEGERS | {torch.bool}

_MOVED_AS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}

#: The types of the parts of complex elements.
_PARTS = {
    torch.complex32: torch.float16,
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}


def check(tensor: Any) -> None:
    """Raises an error if calls do not take the tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"the call takes a tensor, not {type(tensor).__name__}")
    if not tensor.is_cpu:
        raise ValueError(
            f"the backend consort takes tensors in the processor's memory, not on {tensor.device}: "
            "use tensor.cpu(), or another backend"
        )
    if tensor.layout != torch.strided or tensor.is_quantized:
        raise ValueError("the backend consort takes dense tensors: use tensor.to_dense()")


def check_alike(tensors: list[torch.Tensor], like: torch.Tensor) -> None:
    """Raises an error unless the tensors have the length and type of another one."""
    for tensor in tensors:
        check(tensor)
        check_type(tensor, like)
        if tensor.numel() != like.numel():
            raise ValueError(
                f"the tensors of a call must have the same number of elements, not {like.numel()} "
                f"and {tensor.numel()}"
            )


def check_type(tensor: torch.Tensor, like: torch.Tensor) -> None:
    """Raises an error unless two tensors have the same type."""
    if tensor.dtype != like.dtype:
        raise TypeError(f"the tensors of a call have types {like.dtype} and {tensor.dtype}")


def operator(of: Any, dtype: torch.dtype) -> Operator:
    """Returns the team's operator for one of torch on elements of a type."""
    # A comparison takes less time than a look-up by torch's operator, and sums are compared first.
    for known, found in _OPERATORS:
        if of == known:
            on_type = _on_type(found, dtype)
            if on_type is None:
                raise ValueError(f"the backend consort has no operator {_name(of)} on {dtype}")
            return on_type
    raise ValueError(f"the backend consort has no operator {_name(of)}: scale the tensor first")


@cache
def _on_type(op: Operator, dtype: torch.dtype) -> Operator | None:
    """Returns the operator for an operator on elements of a type, if calls have it."""
    name, is_average = op
    if dtype == torch.bool and not is_average:
        return Operator(_OF_BOOL.get(name, name))
    is_float = dtype in _FLOATS or dtype in _NARROW
    if dtype.is_complex:
        has_it = name == "sum"
    elif name in ("and", "or", "xor") or not is_float:
        has_it = dtype in _INTEGERS and not is_average
    else:
        has_it = True
    return op if has_it else None


@cache
def named(name: str, dtype: torch.dtype) -> Operator:
    """Returns the operator of a team with a name, on elements of a type."""
    on_type = _on_type(Operator(name), dtype)
    if on_type is None:
        raise ValueError(f"the backend consort has no operator {name} on {dtype}")
    return on_type


def _name(of: Any) -> str:
    known = [known for known in (*dict(_OPERATORS), dist.ReduceOp.PREMUL_SUM) if of == known]
    return str(known[0] if known else of)


def source(tensor: torch.Tensor, op: Operator | None = None) -> _consort.Elements:
    """Returns the elements of a tensor, or of a copy, for a call that reads them.

    If the call combines them, `op` is its operator.
    """
    return _elements(_held(tensor, op), op)


def array(tensor: torch.Tensor) -> np.ndarray:
    """Returns the elements of a tensor as an array of one axis: its memory, or a copy."""
    held = _held(tensor).detach()
    flat = (torch.view_as_real(held) if held.is_complex() else held).reshape(-1)
    if flat.dtype not in _NATIVE:
        flat = flat.view(_MOVED_AS[flat.itemsize])
    moved: np.ndarray = flat.numpy()
    return moved


class Target:
    """The elements of a tensor, or of a copy, for a call that writes them."""

    __slots__ = ("_held", "_is_average", "_tensor", "elements")

    def __init__(self, tensor: torch.Tensor, op: Operator | None = None) -> None:
        self._tensor = tensor
        self._is_average = op is not None and op.is_average
        self._held = _held(tensor, op)
        self.elements = _elements(self._held, op)

    def array(self) -> np.ndarray:
        """Returns the elements as an array of one axis."""
        return array(self._held)

    def finish(self, size: int) -> None:
        """Divides an average by the number of processes, and writes a copy back."""
        if self._is_average:
            held = self._held.detach()
            held /= size
        if self._held is not self._tensor:
            self._tensor.detach().copy_(self._held)


def joined(tensors: list[torch.Tensor]) -> torch.Tensor | None:
    """Returns a tensor in the memory of a list of them, if they follow each other in one memory.

    The chunks of a tensor do.
    """
    first = tensors[0].detach()
    storage, at = first.untyped_storage().data_ptr(), first.data_ptr()
    for tensor in tensors:
        is_next = tensor.data_ptr() == at and tensor.untyped_storage().data_ptr() == storage
        if not is_next or not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
            return None
        at += tensor.numel() * tensor.itemsize
    return first.as_strided((sum(tensor.numel() for tensor in tensors),), (1,))


def blocks(tensors: list[torch.Tensor]) -> torch.Tensor:
    """Returns a tensor with the elements of all, one after the other: their memory, or a copy."""
    whole = joined(tensors)
    return torch.cat([each.detach().reshape(-1) for each in tensors]) if whole is None else whole


def _held(tensor: torch.Tensor, op: Operator | None = None) -> torch.Tensor:
    """Returns the tensor, or a copy that is contiguous and of the type to combine."""
    if op is not None and op.is_average and tensor.dtype in _NARROW:
        return tensor.detach().float().contiguous()
    if tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg():
        return tensor
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _elements(tensor: torch.Tensor, op: Operator | None) -> _consort.Elements:
    name, parts = _type(tensor.dtype, op is not None)
    # The storage stays while a call runs, even if the tensor gets another one meanwhile.
    owner = tensor.untyped_storage()
    return _consort.Elements(tensor.data_ptr(), tensor.numel() * parts, name, owner)


@cache
def _type(dtype: torch.dtype, are_combined: bool) -> tuple[str, int]:
    """Returns the name of the type of elements for a call, and their number in one of a tensor."""
    if dtype in _PARTS:
        return _type(_PARTS[dtype], are_combined)[0], 2
    parts = 1
    if dtype not in _NATIVE and not (are_combined and dtype in _NARROW):
        size = dtype.itemsize
        dtype, parts = _MOVED_AS[size], size // _MOVED_AS[size].itemsize
    return str(dtype).removeprefix("torch."), parts
