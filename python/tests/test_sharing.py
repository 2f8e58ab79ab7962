"""Calls in memory that something else has: tensors and buffers."""

import array
import ctypes
import sys

import numpy as np
import pytest

import consort
from consort import _consort

BOTH = pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])


class Tensor:
    """An object that shares the memory of an array only by DLPack, as tensors do."""

    def __init__(self, elements, device=(1, 0)):
        self.elements = elements
        self.device = device

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **words):
        return self.elements.__dlpack__(**words)


@BOTH
def test_calls_work_in_tensors(processes):
    def program(team):
        tensor = Tensor(np.full((2, 3), team.rank + 1.0))
        assert team.all_reduce(tensor, out=tensor) is tensor
        assert (tensor.elements == 3).all()
        sums = Tensor(np.empty((2, 3)))
        assert team.scan(tensor, out=sums) is sums
        assert (sums.elements == 3 * (team.rank + 1)).all()
        assert team.broadcast(sums, root=1) is sums and (sums.elements == 6).all()
        gathered = Tensor(np.empty((2, 2, 3)))
        team.all_gather(tensor, out=gathered)
        team.all_to_all(gathered, out=gathered)
        assert (gathered.elements == 3).all()
        one = Tensor(np.empty((2, 3)))
        assert team.scatter(gathered if team.rank == 0 else None, out=one) is one
        assert (one.elements == 3).all()
        other = 1 - team.rank
        one.elements[:] = team.rank
        assert team.send_receive(one, other, sums, other) is sums and (sums.elements == other).all()
        return sums.elements.sum(), team.start_all_reduce(one).wait().sum()

    assert consort.launch(program, 2, processes=processes) == [(6, 6), (0, 6)]


def test_calls_work_in_buffers():
    def program(team):
        numbers = array.array("d", [team.rank, 1.0])
        assert team.all_reduce(numbers, out=numbers) is numbers
        assert numbers.tolist() == [1, 2]
        integers = (ctypes.c_int64 * 2)(team.rank, 5)
        team.broadcast(integers, root=1)
        assert list(integers) == [1, 5]
        text = bytearray(b"0123" if team.rank == 0 else b"    ")
        assert team.broadcast(text) is text and text == b"0123"
        assert team.all_reduce(memoryview(numbers)[1:]).tolist() == [4]
        assert team.gather(b"ab" if team.rank == 0 else b"cd", root=0) is None or team.rank == 0

    consort.launch(program, 2)


def test_results_are_given_to_tensors_without_a_copy():
    def program(team):
        result = team.all_reduce(np.arange(4.0))
        view = np.from_dlpack(result)
        view[0] = 9
        started = team.start_all_reduce([1, 2]).wait()
        np.frombuffer(started, started.dtype)[0] = 7
        return result[0], started[0]

    assert consort.launch(program, 2) == [(9, 7)] * 2


def test_unfit_tensors_and_buffers_are_refused():
    class Shapeless(Tensor):
        def __dlpack_device__(self):
            raise ValueError("Unknown device type meta for Dlpack")

    class Tracked(Tensor):
        def __dlpack__(self, **words):
            raise BufferError("Can't export tensors that require gradient")

    numbers = np.arange(12.0)

    def program(team):
        for error, match, given in [
            (ValueError, "is not in the processor's memory: copy it", Tensor(numbers, (2, 0))),
            (ValueError, "no memory that can be shared: Unknown device", Shapeless(numbers)),
            (ValueError, "cannot be used as an array: .*require gradient", Tracked(numbers)),
            (ValueError, "not contiguous", Tensor(numbers[::2])),
            (ValueError, "not contiguous", Tensor(numbers.reshape(3, 4).T)),
            (ValueError, "cannot be used as an array", Tensor(np.zeros(2, "longdouble"))),
        ]:
            with pytest.raises(error, match=match):
                team.all_reduce(given)
        for error, match, out in [
            (TypeError, "out must be an array, not list", [0.0] * 12),
            (TypeError, "out must be an array, not float", 1.0),
            (TypeError, "out must be an array, not object", object()),
            (TypeError, "out has type uint8", bytearray(12)),
            (ValueError, "read-only", memoryview(numbers.tobytes()).cast("d")),
            (ValueError, r"out has shape \(6,\)", Tensor(np.zeros(6))),
            (ValueError, "not in the processor's memory", Tensor(numbers, (2, 0))),
        ]:
            with pytest.raises(error, match=match):
                team.all_reduce(numbers, out=out)

    consort.launch(program, 1)


def test_overlap_of_tensors_is_refused():
    def program(team):
        whole = np.zeros(10)
        for given, out in [(whole[:6], whole[4:]), (whole[:6], whole[:6])]:
            with pytest.raises(ValueError, match="share memory, but are not the same array"):
                team.all_reduce(Tensor(given), out=Tensor(out))
            with pytest.raises(ValueError, match="share memory, but are not the same array"):
                team.send_receive(Tensor(given), 0, Tensor(out), 0)
        team.all_reduce(Tensor(whole[:5]), out=Tensor(whole[5:]))

    consort.launch(program, 1)


def elements(array, name, count=None, skip=0):
    """Returns the memory of an array as that of another object."""
    length = len(array) if count is None else count
    return _consort.Elements(array.ctypes.data + skip, length, name, array)


def test_memory_of_other_objects_is_used_in_place():
    def program(team):
        native = team._native
        ones = np.ones(5, "float32")
        native.collective("all_reduce", None, elements(ones, "float32"), "sum")
        assert ones.tolist() == [2.0] * 5
        # 1.0 as bfloat16, which NumPy lacks
        bits = np.full(3, 0x3F80, "uint16")
        native.collective("all_reduce", None, elements(bits, "bfloat16"), "sum")
        assert bits.tolist() == [0x4000] * 3
        none = _consort.Elements(0, 0, "float64", None)
        native.collective("all_reduce", None, none, "sum")
        given, received = np.array([team.rank]), np.empty(2, "int64")
        read, written = elements(given, "int64"), elements(received, "int64")
        assert not read.overlaps(written) and written.overlaps(written)
        native.collective("all_gather", read, written)
        assert received.tolist() == [0, 1]

    consort.launch(program, 2)


def test_unfit_memory_is_refused():
    whole = np.zeros(8)
    for name, count, skip, error, match in [
        ("float128", 1, 0, TypeError, "unknown type of elements 'float128'"),
        ("float64", 1, 4, ValueError, "must be aligned"),
        ("float64", 2**61, 0, ValueError, "must be aligned"),
    ]:
        with pytest.raises(error, match=match):
            elements(whole, name, count, skip)
    with pytest.raises(ValueError, match="must be aligned"):
        _consort.Elements(0, 1, "uint8", None)

    def program(team):
        read, written = elements(whole, "float64", 6), elements(whole, "float64", 6, 16)
        for source in (whole, read):
            with pytest.raises(ValueError, match="share memory, but are not the same array"):
                team._native.collective("all_reduce", source, written, "sum")
        other = elements(np.zeros(6, "float32"), "float32")
        with pytest.raises(TypeError, match="the result has type float32: use float64"):
            team._native.collective("all_reduce", read, other, "sum")
        # The failed calls have given their memory back.
        team._native.collective("all_reduce", None, written, "sum")

    consort.launch(program, 1)


def test_two_calls_cannot_change_the_memory_of_an_object():
    whole = np.zeros(8)

    def program(team):
        team._native.collective("all_reduce", None, elements(whole, "float64"), "sum")

    def of_both_kinds(team):
        memory = elements(whole, "float64") if team.rank == 0 else whole
        team._native.collective("all_reduce", None, memory, "sum")

    def of_reader_and_writer(team):
        source = elements(whole, "float64") if team.rank == 0 else None
        target = np.zeros(8) if team.rank == 0 else elements(whole, "float64")
        team._native.collective("all_reduce", source, target, "sum")

    for each in (program, of_both_kinds, of_reader_and_writer):
        with pytest.raises(ValueError, match="in use by another call, and one of the two calls"):
            consort.launch(each, 2)


def test_bfloat16_tensors_of_torch_are_used_in_place():
    torch = pytest.importorskip("torch")
    pytest.importorskip("ml_dtypes")

    def program(team):
        tensor = torch.full((5,), team.rank + 1.0, dtype=torch.bfloat16)
        assert team.all_reduce(tensor, out=tensor) is tensor
        return tensor.tolist()

    assert consort.launch(program, 2) == [[3.0] * 5] * 2


def test_tensors_of_torch_are_used_in_place():
    torch = pytest.importorskip("torch")

    def program(team):
        mine = torch.full((1000,), team.rank + 1.0)
        assert team.all_reduce(mine, out=mine) is mine
        assert (mine == 3).all()
        assert torch.from_dlpack(team.all_reduce(mine)).sum().item() == 6000
        for tensor, match in [
            (torch.ones(4, requires_grad=True), "require gradient"),
            (torch.ones(4, device="meta"), "meta"),
            (torch.ones(4)[::2], "not contiguous"),
            (torch.ones(4).to_sparse(), "cannot be used as an array|no memory"),
        ]:
            with pytest.raises(ValueError, match=match):
                team.all_reduce(tensor)

    consort.launch(program, 2)


def test_arrays_of_jax_are_read_without_a_copy():
    jax = pytest.importorskip("jax")

    def program(team):
        mine = jax.numpy.arange(4.0) * (team.rank + 1)
        total = team.all_reduce(mine)
        with pytest.raises(ValueError, match="read-only"):
            team.all_reduce(mine, out=mine)  # JAX's arrays do not change
        return jax.dlpack.from_dlpack(total).tolist()

    assert consort.launch(program, 2) == [[0, 3, 6, 9]] * 2


def test_no_reference_to_shared_memory_is_left():
    given, out = bytearray(16), bytearray(16)
    consort.launch(lambda team: team.all_reduce(given, out=out), 1)
    given += b"1"  # an error while a view exists
    out += b"1"
    tensor = Tensor(np.zeros(2))
    before = sys.getrefcount(tensor.elements)
    consort.launch(lambda team: team.all_reduce(tensor), 1)
    after = sys.getrefcount(tensor.elements)  # an assertion has references itself
    assert after == before
