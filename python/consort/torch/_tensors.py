"""The memory of tensors as arrays, and the operators of torch as those of a team."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

#: The operators of torch, and those of a team.
_OPERATORS = (
    (dist.ReduceOp.SUM, "sum"),
    (dist.ReduceOp.AVG, "sum"),
    (dist.ReduceOp.PRODUCT, "product"),
    (dist.ReduceOp.MIN, "min"),
    (dist.ReduceOp.MAX, "max"),
    (dist.ReduceOp.BAND, "and"),
    (dist.ReduceOp.BOR, "or"),
    (dist.ReduceOp.BXOR, "xor"),
)

#: The operators on bool for those that bool does not have: true is 1, and 1 + 1 is true.
_OF_BOOL = {"sum": "or", "product": "and"}

_FLOATS = {torch.float32, torch.float64}


def _bfloat16() -> np.dtype | None:
    """Returns NumPy's bfloat16, which the optional package ml_dtypes defines."""
    try:
        import_module("ml_dtypes")
    except ImportError:
        return None
    return np.dtype("bfloat16")


#: The floats that a team combines in float32, and their types in NumPy. Those without a type, and
#: averages of them, are combined as float32.
_NARROW = {torch.float16: np.dtype("float16"), torch.bfloat16: _bfloat16()}

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

#: The types that calls take. Elements of others are moved as integers of their size.
_NATIVE = _FLOATS | _INTEGERS | {torch.bool}

_MOVED_AS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.int64}


def check(tensor: Any) -> None:
    """Raises an error if calls do not take the tensor."""
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"the call takes a tensor, not {type(tensor).__name__}")
    if tensor.device.type != "cpu":
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


def operator(of: Any, dtype: torch.dtype) -> str:
    """Returns the team's operator for one of torch on elements of a type."""
    name = next((name for known, name in _OPERATORS if of == known), None)
    if name is None:
        raise ValueError(f"the backend consort has no operator {_name(of)}: scale the tensor first")
    if dtype == torch.bool and not is_average(of):
        return _OF_BOOL.get(name, name)
    is_float = dtype in _FLOATS or dtype in _NARROW
    if dtype.is_complex:
        has_it = name == "sum"
    elif name in ("and", "or", "xor") or not is_float:
        has_it = dtype in _INTEGERS and not is_average(of)
    else:
        has_it = True
    if not has_it:
        raise ValueError(f"the backend consort has no operator {_name(of)} on {dtype}")
    return name


def is_average(of: Any) -> bool:
    """Returns whether an operator of torch divides by the number of processes."""
    return bool(of == dist.ReduceOp.AVG)


def _name(of: Any) -> str:
    known = [known for known in (*dict(_OPERATORS), dist.ReduceOp.PREMUL_SUM) if of == known]
    return str(known[0] if known else of)


def source(tensor: torch.Tensor, op: Any = None) -> np.ndarray:
    """Returns the elements of a tensor as an array of one axis: its memory, or a copy.

    If a call combines them, `op` is its operator.
    """
    return _array(_held(tensor, op), op)


class Target:
    """The elements of a tensor as an array of one axis, for a call that writes them."""

    def __init__(self, tensor: torch.Tensor, op: Any = None) -> None:
        self._tensor = tensor.detach()
        self._held = _held(tensor, op)
        #: The memory of the tensor, or that of a copy.
        self.array = _array(self._held, op)

    def finish(self, divisor: int = 1) -> None:
        """Divides the elements, and writes a copy back."""
        if divisor > 1:
            self._held /= divisor
        if self._held.data_ptr() != self._tensor.data_ptr():
            self._tensor.copy_(self._held)


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


def blocks(tensors: list[torch.Tensor], op: Any = None) -> np.ndarray:
    """Returns the elements of tensors one after the other: their memory, or a copy."""
    whole = joined(tensors)
    if whole is not None:
        return source(whole, op)
    return np.concatenate([source(each, op) for each in tensors])


def _held(tensor: torch.Tensor, op: Any) -> torch.Tensor:
    """Returns the tensor, or a copy that is contiguous and of the type to combine."""
    held = tensor.detach().resolve_conj().resolve_neg().contiguous()
    if op is None or held.dtype not in _NARROW:
        return held
    has_type = _NARROW[held.dtype] is not None
    return held if has_type and not is_average(op) else held.float()


def _array(tensor: torch.Tensor, op: Any) -> np.ndarray:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor)
    flat, short = tensor.reshape(-1), _NARROW.get(tensor.dtype)
    if flat.dtype not in _NATIVE:
        flat = flat.view(_MOVED_AS[flat.itemsize])
    array: np.ndarray = flat.numpy()
    return array if op is None or short is None else array.view(short)
