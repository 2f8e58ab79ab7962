"""Symmetric memory as arrays that PEs share."""

import gc
import os
import threading

import numpy as np
import pytest

import consort

BOTH = pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])


@BOTH
def test_part_of_memory_is_an_array_that_others_read(processes):
    def program(team):
        memory = team.symmetric((2, 3), "int32")
        mine = memory.array
        assert (mine.shape, mine.dtype, memory.shape, len(memory)) == ((2, 3), "int32", (2, 3), 6)
        assert not mine.any()
        mine[:] = np.arange(6).reshape(2, 3) + 10 * team.rank
        team.barrier()
        right = (team.rank + 1) % team.size
        # By a get and by the peer's own part, which are the same elements.
        assert memory.get(right, first=2, count=2).tolist() == [10 * right + 2, 10 * right + 3]
        assert memory.part(right)[1].tolist() == [10 * right + each for each in (3, 4, 5)]
        team.barrier()
        memory.put(np.array([7, 8], "int32"), to=right)
        memory.quiet()
        team.barrier()
        assert memory.array is mine and memory.part(team.rank) is mine
        return mine.tolist()

    results = consort.launch(program, 3, processes=processes)
    for rank, rows in enumerate(results):
        assert rows == [[7, 8, 10 * rank + 2], [10 * rank + each for each in (3, 4, 5)]]


@BOTH
@pytest.mark.parametrize("length", [5, 100_000])
def test_calls_work_in_memory(processes, length):
    def program(team):
        rank, size = team.rank, team.size
        memory = team.symmetric((3, length))
        one, other, more = memory.array
        ones = np.arange(float(length))
        one[:] = ones + rank
        assert team.all_reduce(one, out=one) is one
        np.testing.assert_array_equal(one, ones * size + sum(range(size)))
        team.all_reduce(one, "max", out=other)
        np.testing.assert_array_equal(other, one)
        more[:] = rank
        team.broadcast(more, root=1)
        assert (more == 1).all()
        team.scan(more, out=more)
        assert (more == rank + 1).all()
        team.reduce(more, out=more, root=2)
        assert rank != 2 or (more == 6).all()
        # On one PE the memory is symmetric, and on the others it is not.
        mixed = other if rank == 0 else np.empty(length)
        mixed[:] = rank
        assert team.all_gather(mixed)[:, -1].tolist() == [0, 1, 2]
        gathered = team.symmetric((3, length)).array
        team.all_gather(one, out=gathered)
        np.testing.assert_array_equal(gathered[2], one)
        team.all_to_all(gathered, out=gathered)
        np.testing.assert_array_equal(gathered[1], one)
        team.reduce_scatter(gathered, out=other)
        np.testing.assert_array_equal(other, one * 3)
        if rank == 0:
            team.send(one, to=1)
        elif rank == 1:
            team.receive(more, source=0)
            np.testing.assert_array_equal(more, one)
        return float(team.start_all_reduce(other, "min").wait()[0])

    assert consort.launch(program, 3, processes=processes) == [9.0] * 3


@BOTH
def test_peers_may_read_an_array_in_place_in_symmetric_memory(processes):
    def program(team):
        mine = team.symmetric(40_000).array
        for _ in range(5):  # the first call makes the plan
            mine[:] = np.arange(40_000) + team.rank
            team.all_reduce(mine, out=mine)
            np.testing.assert_array_equal(mine, 2.0 * np.arange(40_000) + 1)
            team.barrier()

    consort.launch(program, 2, processes=processes)


@BOTH
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "complex128", "bfloat16"])
def test_memory_of_any_type_is_an_array(processes, dtype):
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes")

    def program(team):
        mine = team.symmetric(9, dtype).array
        assert mine.dtype == np.dtype(dtype)
        mine[team.rank] = 1
        team.all_reduce(mine, "max" if dtype == "bool" else "sum", out=mine)
        assert mine.astype(complex).tolist() == [1, 1] + 7 * [0]

    consort.launch(program, 2, processes=processes)


def test_array_keeps_memory_that_was_dropped():
    def program(team):
        kept = team.symmetric(1 << 20).array  # 8 MiB of the 64 MiB of a PE
        kept[:] = 5
        for _ in range(10):
            team.symmetric(1 << 20).array[:] = 6
        assert (kept == 5).all()
        del kept
        for _ in range(6):
            team.symmetric(1 << 20)

    consort.launch(program, 2)


@BOTH
def test_array_keeps_memory_after_the_job(processes):
    kept = []

    def program(team):
        part = team.split(0)
        memory, other = team.symmetric(1000, int), part.symmetric(1000, int)
        memory.array[:] = other.array[:] = team.rank + 1
        kept.append((memory.array, other.array, memory.part(1 - team.rank)))
        part.free()
        with pytest.raises(consort.Error, match="freed"):
            other.get(0)
        team.barrier()
        return memory.array if not processes else None

    if processes:
        # One of the processes is this one.
        def child(name):
            consort.attach(program, 1, 2, name)
            own, _, theirs = kept.pop()
            assert own.sum() == 2000 and theirs.sum() == 1000
            own[:] = theirs

        name = f"kept-{os.getpid()}"
        pid = os.fork()
        if pid == 0:
            try:
                child(name)
                os._exit(0)
            finally:
                os._exit(1)
        consort.attach(program, 0, 2, name)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    else:
        assert [each.sum() for each in consort.launch(program, 2)] == [1000, 2000]
    gc.collect()
    assert len(kept) == (1 if processes else 2)
    for own, other, _ in kept:
        assert own.sum() in (1000, 2000) and other.sum() == own.sum()
    for own, _, theirs in kept:
        own += 1
        theirs[:5] = 9
        assert theirs[:5].tolist() == [9] * 5


def test_array_is_dropped_by_any_thread():
    def program(team):
        for _ in range(20):
            kept = [team.symmetric(1 << 20).array]
            thread = threading.Thread(target=kept.clear)
            thread.start()
            thread.join()

    consort.launch(program, 2)


def test_array_of_an_attachment_outlives_it():
    with consort.Attachment(0, 1, name=f"array-{os.getpid()}") as attached:
        memory = attached.team.symmetric(10)
        array = memory.array
        array[:] = 3
        assert attached.team.all_reduce(array, out=array) is array
    assert array.sum() == 30
    with pytest.raises(consort.Error, match="closed"):
        memory.get(0)


def test_forked_child_writes_a_copy_of_memory():
    def program(team):
        mine = team.symmetric(4, int).array
        mine[:] = 1
        pid = os.fork()
        if pid == 0:
            mine[:] = 2
            os._exit(int(mine.sum()))
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 8
        return int(mine.sum())

    assert consort.launch(program, 2, processes=True) == [4, 4]


def test_memory_has_no_other_parts_and_may_be_empty():
    def program(team):
        memory = team.symmetric(0)
        assert memory.array.shape == (0,) and memory.array.size == 0
        team.all_reduce(memory.array, out=memory.array)
        with pytest.raises(ValueError, match="PE 2 is not in the team"):
            memory.part(2)

    consort.launch(program, 2)


def test_put_and_get_between_overlapping_elements():
    def program(team):
        memory = team.symmetric(10, int)
        mine = memory.array
        mine[:] = range(10)
        memory.put(mine[:6], to=team.rank, first=2)
        memory.quiet()
        assert mine.tolist() == [0, 1, 0, 1, 2, 3, 4, 5, 8, 9]
        mine[:] = range(10)
        assert memory.get(team.rank, first=3, out=mine[1:6]).tolist() == [3, 4, 5, 6, 7]
        assert mine.tolist() == [0, 3, 4, 5, 6, 7, 6, 7, 8, 9]

    consort.launch(program, 2)


def test_overlap_of_slices_is_refused():
    def program(team):
        mine = team.symmetric(10).array
        with pytest.raises(ValueError, match="in use by another call"):
            team.all_reduce(mine[:6], out=mine[4:])
        team.all_reduce(mine[:5], out=mine[5:])

    consort.launch(program, 1)


def test_buffers_are_put_and_got():
    def program(team):
        memory = team.symmetric(3)
        memory.put(memoryview(np.arange(3.0)), to=1 - team.rank)
        memory.quiet()
        team.barrier()
        out = memoryview(np.zeros(2))
        assert memory.get(team.rank, first=1, out=out) is out
        return out.tolist()

    assert consort.launch(program, 2) == [[1.0, 2.0]] * 2


def test_memory_is_a_tensor_of_torch():
    torch = pytest.importorskip("torch")

    def program(team):
        mine = torch.from_dlpack(team.symmetric(1000).array)
        mine += team.rank + 1
        team.all_reduce(mine, out=mine)
        return (mine == 3).all().item()

    assert consort.launch(program, 2) == [True, True]


def test_forked_child_has_no_memory():
    def program(team):
        memory = team.symmetric(4)
        pid = os.fork()
        if pid == 0:
            try:
                memory.get(0)
            except consort.Error as error:
                os._exit(7 if "forked" in str(error) else 8)
            os._exit(9)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert consort.launch(program, 2, processes=True) == [7, 7]
