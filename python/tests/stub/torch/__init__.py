"""The part of PyTorch's interface that `consort.torch` uses, over NumPy.

Types are checked against it, and the backend's own logic is tested with it where PyTorch is not
installed. A test with PyTorch compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import distributed, futures

__all__ = [
    "Tensor",
    "cat",
    "device",
    "distributed",
    "dtype",
    "empty",
    "futures",
    "view_as_real",
]


class dtype:
    """A type of elements."""

    def __init__(self, name: str, elements: str) -> None:
        self.name = name
        self.elements = np.dtype(elements)
        self.itemsize = self.elements.itemsize
        self.is_complex = self.elements.kind == "c"

    def __repr__(self) -> str:
        return f"torch.{self.name}"


float16 = dtype("float16", "float16")
#: Its elements are only moved.
bfloat16 = dtype("bfloat16", "V2")
float32 = dtype("float32", "float32")
float64 = dtype("float64", "float64")
#: Its elements are only moved.
complex32 = dtype("complex32", "V4")
complex64 = dtype("complex64", "complex64")
complex128 = dtype("complex128", "complex128")
int8 = dtype("int8", "int8")
int16 = dtype("int16", "int16")
int32 = dtype("int32", "int32")
int64 = dtype("int64", "int64")
uint8 = dtype("uint8", "uint8")
uint16 = dtype("uint16", "uint16")
uint32 = dtype("uint32", "uint32")
uint64 = dtype("uint64", "uint64")
bool = dtype("bool", "bool")

_TYPES = [each for each in globals().values() if isinstance(each, dtype)]

strided = "torch.strided"
sparse_coo = "torch.sparse_coo"


class device:
    """A place of tensors."""

    def __init__(self, type: str) -> None:
        self.type = type

    def __str__(self) -> str:
        return self.type


class UntypedStorage:
    """The memory of tensors."""

    def __init__(self, elements: np.ndarray) -> None:
        self.elements = elements

    def data_ptr(self) -> int:
        return int(self.elements.ctypes.data)


class Tensor:
    """A tensor with the elements of an array."""

    is_quantized = False

    def __init__(
        self, elements: Any, *, kind: dtype | None = None, on: str = "cpu", layout: str = strided
    ) -> None:
        self.elements = np.asarray(elements)
        self.dtype = kind or next(each for each in _TYPES if each.elements == self.elements.dtype)
        self.device = device(on)
        self.layout = layout

    def _like(self, elements: Any) -> Tensor:
        return Tensor(elements, kind=self.dtype)

    def __iter__(self) -> Iterator[Tensor]:
        return map(self._like, self.elements)

    @property
    def is_cpu(self) -> Any:
        return self.device.type == "cpu"

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.elements.shape)

    def numel(self) -> int:
        return int(self.elements.size)

    def dim(self) -> int:
        return self.elements.ndim

    def size(self, dim: int) -> int:
        return int(self.elements.shape[dim])

    def is_complex(self) -> Any:
        return self.dtype.is_complex

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        return int(self.elements.ctypes.data)

    def untyped_storage(self) -> UntypedStorage:
        base = self.elements.base
        return UntypedStorage(base if isinstance(base, np.ndarray) else self.elements)

    def as_strided(self, size: tuple[int], stride: tuple[int]) -> Tensor:
        assert stride == (1,)
        base = self.untyped_storage()
        first = (self.data_ptr() - base.data_ptr()) // self.itemsize
        return self._like(base.elements.reshape(-1)[first : first + size[0]])

    def is_conj(self) -> Any:
        return False

    def is_neg(self) -> Any:
        return False

    def detach(self) -> Tensor:
        return self._like(self.elements)

    def resolve_conj(self) -> Tensor:
        return self

    def resolve_neg(self) -> Tensor:
        return self

    def is_contiguous(self) -> Any:
        return self.elements.flags.c_contiguous

    def contiguous(self) -> Tensor:
        return self if self.is_contiguous() else self._like(self.elements.copy())

    def clone(self) -> Tensor:
        return self._like(self.elements.copy())

    def reshape(self, *shape: Any) -> Tensor:
        return self._like(self.elements.reshape(*shape))

    def view(self, kind: dtype) -> Tensor:
        return Tensor(self.elements.view(kind.elements), kind=kind)

    def float(self) -> Tensor:
        return Tensor(self.elements.astype("float32"))

    def copy_(self, source: Tensor) -> Tensor:
        self.elements[...] = source.elements
        return self

    def __itruediv__(self, divisor: int) -> Tensor:
        self.elements /= divisor
        return self

    def numpy(self) -> np.ndarray:
        return self.elements


def cat(tensors: list[Tensor]) -> Tensor:
    """Returns a tensor with the elements of others one after the other."""
    whole = np.concatenate([tensor.elements for tensor in tensors])
    return Tensor(whole, kind=tensors[0].dtype)


def empty(shape: tuple[int, ...], dtype: dtype, device: str) -> Tensor:
    """Returns a tensor with any elements."""
    assert device == "cpu"
    return Tensor(np.empty(shape, dtype.elements), kind=dtype)


def view_as_real(tensor: Tensor) -> Tensor:
    """Returns the real and imaginary parts of elements on another axis."""
    half = {8: "float32", 16: "float64"}[tensor.dtype.itemsize]
    return Tensor(tensor.elements.reshape(*tensor.elements.shape, 1).view(half))
