"""Nonblocking calls and symmetric memory."""

import numpy as np
import pytest

import consort


def test_pending_calls_end_in_any_order():
    def program(team):
        pes, rank = team.size, team.rank
        mine = np.arange(pes * 2, dtype="int32").reshape(pes, 2) + rank
        started = [
            team.start_all_reduce(mine),
            team.start_broadcast(mine, root=1),
            team.start_reduce(mine, "max", root=2),
            team.start_scan(mine),
            team.start_exclusive_scan(mine),
            team.start_reduce_scatter(mine),
            team.start_gather(mine, root=1),
            team.start_all_gather(mine),
            team.start_all_to_all(mine),
            team.start_scatter(mine) if rank == 0 else team.start_scatter(shape=2, dtype="int32"),
            team.start_barrier(),
        ]
        mine[:] = 99  # they have copies
        team.barrier()
        return [request.wait() for request in reversed(started)][::-1]

    base = np.arange(6, dtype="int32").reshape(3, 2)
    everything = np.stack([base, base + 1, base + 2])
    for rank, results in enumerate(consort.launch(program, 3)):
        expected = [
            everything.sum(0, dtype="int32"),
            base + 1,
            base + 2 if rank == 2 else None,
            everything[: rank + 1].sum(0, dtype="int32"),
            everything[:rank].sum(0, dtype="int32") if rank > 0 else None,
            everything.sum(0, dtype="int32")[rank],
            everything if rank == 1 else None,
            everything,
            everything[:, rank],
            base[rank],
            None,
        ]
        for result, right in zip(results, expected, strict=True):
            assert (result is None) == (right is None)
            if right is not None:
                assert result.dtype == right.dtype
                np.testing.assert_array_equal(result, right)


def test_requests_are_tested_and_waited_for_once():
    def program(team):
        request = team.start_all_reduce(team.rank == 1, "or")
        while not request.test():
            team.progress()
        result = request.wait()
        assert request.test()
        with pytest.raises(consort.Error, match="has been taken"):
            request.wait()
        return result

    assert consort.launch(program, 2) == [True, True]


def test_started_scatter_needs_an_array_and_a_block():
    def program(team):
        with pytest.raises(ValueError, match="a block for each PE"):
            team.start_scatter(np.zeros(3), root=team.rank)
        with pytest.raises(TypeError, match="root of a scatter must pass an array"):
            team.start_scatter(root=team.rank)
        if team.rank == 1:
            return float(team.start_scatter([3.0, 4.0], root=1).wait())
        return float(team.start_scatter(root=1).wait())  # a block without axes

    assert consort.launch(program, 2) == [3.0, 4.0]


def test_scatter_of_other_blocks_is_a_mismatch():
    def program(team):
        if team.rank == 0:
            return team.start_scatter(np.zeros((2, 3))).wait()
        return team.start_scatter(shape=2).wait()

    with pytest.raises(consort.Mismatched):
        consort.launch(program, 2)


def test_requests_may_be_dropped():
    def program(team):
        for _ in range(200):
            team.start_all_reduce(np.ones(100))
        return float(team.start_all_reduce(1.0).wait())

    assert consort.launch(program, 3) == [3, 3, 3]


@pytest.mark.parametrize("dtype", ["float32", "int16", "uint64", "bool"])
def test_memory_put_and_get(dtype):
    def program(team):
        memory = team.symmetric(10, dtype)
        right = (team.rank + 1) % team.size
        memory.put(np.full(3, team.rank + 1, dtype), to=right, first=2)
        memory.fence()
        memory.quiet()
        team.barrier()
        out = np.zeros(4, dtype)
        assert memory.get(right, first=1, out=out) is out
        whole = memory.get(team.rank)
        assert (len(memory), memory.dtype) == (10, np.dtype(dtype))
        team.barrier()
        return whole, out

    for rank, (whole, out) in enumerate(consort.launch(program, 3)):
        left = (rank - 1) % 3
        expected = np.zeros(10, dtype)
        expected[2:5] = np.array(left + 1, dtype)
        np.testing.assert_array_equal(whole, expected)
        np.testing.assert_array_equal(out[1:], np.full(3, rank + 1, dtype))


def test_memory_has_bounds_and_a_type():
    def program(team):
        memory = team.symmetric(4, "int64")
        with pytest.raises(ValueError, match=r"elements 3\.\.5 are not in memory of 4"):
            memory.put(np.zeros(2, "int64"), to=0, first=3)
        with pytest.raises(ValueError, match="PE 2 is not in the team"):
            memory.get(2)
        with pytest.raises(
            TypeError, match="the array has type float64, but the memory has type int64"
        ):
            memory.put(np.zeros(2), to=0)
        with pytest.raises(ValueError, match="out has 2 elements, not 3"):
            memory.get(0, count=3, out=np.zeros(2, "int64"))

    consort.launch(program, 2)


def test_dropped_memory_is_reused():
    def program(team):
        for _ in range(20):
            team.symmetric(1 << 20)  # 8 MiB of the 64 MiB of a PE

    consort.launch(program, 2)


def test_too_much_memory_is_an_error():
    with pytest.raises(MemoryError):
        consort.launch(lambda team: team.symmetric(1 << 30), 2)
