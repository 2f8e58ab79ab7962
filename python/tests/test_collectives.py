"""Each collective on random arrays, with NumPy as the oracle."""

import functools

import numpy as np
import pytest

import consort

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
try:
    import ml_dtypes  # noqa: F401
except ImportError:
    pass
else:
    FLOATS.append("bfloat16")
TYPES = [*INTEGERS, *FLOATS, *COMPLEX, "bool"]
OPERATORS = {
    "sum": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}
SIZES = [1, 2, 3, 5]


def operators(dtype):
    if dtype == "bool":
        return ["min", "max", "and", "or", "xor"]
    return list(OPERATORS)[: 2 if dtype in COMPLEX else 4 if dtype in FLOATS else None]


PAIRS = [(dtype, op) for dtype in TYPES for op in operators(dtype)]


def arrays(dtype, pes, shape, seed=0):
    """An array for each PE, with values whose sums are exact."""
    draw = np.random.default_rng([seed, pes])
    low = 0 if dtype == "bool" or dtype.startswith("u") else -3
    high = 2 if dtype == "bool" else 4
    numbers = [draw.integers(low, high, (2, *np.atleast_1d(shape))) for _ in range(pes)]
    if dtype in COMPLEX:
        return [(real + 1j * imaginary).astype(dtype) for real, imaginary in numbers]
    return [number.astype(dtype) for number, _ in numbers]


def combined(op, each):
    return functools.reduce(OPERATORS[op], each)


def same(given, expected):
    assert given.dtype == expected.dtype
    np.testing.assert_array_equal(given, expected)


@pytest.mark.parametrize("pes", SIZES)
@pytest.mark.parametrize(("dtype", "op"), PAIRS)
def test_reductions_and_scans_agree_with_numpy(dtype, op, pes):
    each = arrays(dtype, pes, (pes, 3))
    root = pes - 1

    def program(team):
        mine = each[team.rank]
        return (
            team.reduce(mine, op, root=root),
            team.all_reduce(mine, op),
            team.reduce_scatter(mine, op),
            team.scan(mine, op),
            team.exclusive_scan(mine, op),
        )

    whole = combined(op, each)
    for rank, results in enumerate(consort.launch(program, pes)):
        reduced, all_reduced, block, scanned, before = results
        assert (reduced is None) == (rank != root)
        if rank == root:
            same(reduced, whole)
        same(all_reduced, whole)
        same(block, whole[rank])
        same(scanned, combined(op, each[: rank + 1]))
        assert (before is None) == (rank == 0)
        if rank > 0:
            same(before, combined(op, each[:rank]))


@pytest.mark.parametrize("dtype", [dtype for dtype in FLOATS if "16" in dtype])
def test_sums_of_short_floats_are_rounded_once(dtype):
    half_step = np.array(2.0**-8 if dtype == "bfloat16" else 2.0**-11).astype(dtype)

    def program(team):
        mine = np.full(5, 1 if team.rank == 0 else half_step, dtype)
        return team.all_reduce(mine), team.start_all_reduce(mine).wait()

    for sums in consort.launch(program, pes=3):
        for found in sums:
            same(found, np.full(5, 1 + 2 * float(half_step), dtype))


@pytest.mark.parametrize("pes", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
def test_data_movement_agrees_with_numpy(dtype, pes):
    each = arrays(dtype, pes, (pes, 2, 3))

    def program(team, root):
        mine = each[team.rank]
        return (
            team.broadcast(mine.copy(), root),
            team.gather(mine, root),
            team.all_gather(mine),
            team.scatter(mine if team.rank == root else None, root),
            team.all_to_all(mine),
        )

    everything = np.stack(each)
    for root in range(pes):
        for rank, results in enumerate(consort.launch(program, pes, (root,))):
            sent, gathered, all_gathered, block, exchanged = results
            same(sent, each[root])
            assert (gathered is None) == (rank != root)
            if rank == root:
                same(gathered, everything)
            same(all_gathered, everything)
            same(block, each[root][rank])
            same(exchanged, everything[:, rank])


@pytest.mark.parametrize("length", [0, 1, 7, 1000, 300_000])
def test_any_length_is_taken(length):
    each = arrays("float64", 3, length)

    def program(team):
        return team.all_reduce(each[team.rank]), team.all_gather(each[team.rank])

    for total, everything in consort.launch(program, 3):
        same(total, sum(each))
        same(everything, np.stack(each))


def test_every_pe_can_be_the_root():
    each = arrays("int64", 4, 5)
    for root in range(4):
        results = consort.launch(lambda team, at=root: team.reduce(each[team.rank], root=at), 4)
        assert [result is not None for result in results] == [at == root for at in range(4)]
        same(results[root], sum(each))


def test_results_are_written_to_out():
    def program(team):
        pes, mine = team.size, np.arange(6.0).reshape(2, 3) + team.rank
        total, everything = np.zeros((2, 3)), np.zeros((pes, 2, 3))
        assert team.all_reduce(mine, out=total) is total
        assert team.all_gather(mine, out=everything) is everything
        assert team.scan(mine, out=np.empty((2, 3))).shape == (2, 3)
        row = np.zeros(3)
        assert team.reduce_scatter(mine, out=row) is row
        assert team.scatter(mine if team.rank == 0 else None, out=row) is row
        exchanged = np.zeros((2, 3))
        assert team.all_to_all(mine, out=exchanged) is exchanged
        on_root = np.zeros((2, 3)) if team.rank == 0 else None
        assert team.reduce(mine, out=on_root) is on_root
        all_on_root = np.zeros((pes, 2, 3)) if team.rank == 0 else None
        assert team.gather(mine, out=all_on_root) is all_on_root
        return total, everything, row, exchanged

    for rank, (total, everything, row, exchanged) in enumerate(consort.launch(program, 2)):
        base = np.arange(6.0).reshape(2, 3)
        same(total, 2 * base + 1)
        same(everything, np.stack([base, base + 1]))
        same(row, base[rank])
        same(exchanged, np.stack([base[rank], base[rank] + 1]))


@pytest.mark.parametrize("length", [4, 100_000, 400_000])
def test_calls_in_place_agree_with_numpy(length):
    each = arrays("int64", 3, length)

    def program(team):
        total, part = each[team.rank].copy(), each[team.rank].copy()
        first, reduced = each[team.rank].copy(), each[team.rank].copy()
        assert team.all_reduce(total, out=total) is total
        assert team.scan(part, out=part) is part
        assert team.exclusive_scan(first, out=first) is first
        assert (team.reduce(reduced, root=1, out=reduced) is reduced) == (team.rank == 1)
        return total, part, first, reduced

    for rank, (total, part, first, reduced) in enumerate(consort.launch(program, 3)):
        same(total, sum(each))
        same(part, sum(each[: rank + 1]))
        same(first, each[0] if rank == 0 else sum(each[:rank]))
        same(reduced, sum(each) if rank == 1 else each[rank])


def test_all_to_all_in_place_exchanges_blocks():
    def program(team):
        mine = np.full(team.size, team.rank)
        return team.all_to_all(mine, out=mine)

    for result in consort.launch(program, 4):
        same(result, np.arange(4))


def test_numbers_and_lists_are_taken():
    def program(team):
        return (
            team.all_reduce(team.rank + 0.5),
            team.broadcast(team.rank == 1, root=1),
            team.all_gather(team.rank),
            team.all_reduce([1, team.rank]),
            team.scan(np.float32(2)),
        )

    total, truth, ranks, pair, part = consort.launch(program, 2)[1]
    assert (total, truth, part) == (2.0, True, 4.0)
    assert isinstance(total, np.float64) and part.dtype == np.float32
    same(ranks, np.arange(2))
    same(pair, np.array([2, 1]))


def test_arrays_without_axes_stay_arrays():
    result = consort.launch(lambda team: team.all_reduce(np.array(2.0)), 2)[0]
    assert isinstance(result, np.ndarray) and result.shape == () and result == 4


def test_root_may_send_a_read_only_array():
    fixed = np.arange(4)
    fixed.flags.writeable = False

    def program(team):
        return team.broadcast(fixed if team.rank == 0 else np.zeros(4, int))

    assert all((result == fixed).all() for result in consort.launch(program, 3))


def test_numbers_are_preferred_to_nan():
    each = [np.array([np.nan, 1.0]), np.array([2.0, np.nan])]
    for op, expected in (("min", [2, 1]), ("max", [2, 1])):
        same(
            consort.launch(lambda team, o=op: team.all_reduce(each[team.rank], o), 2)[0],
            np.array(expected, float),
        )


def test_integer_sums_wrap():
    assert consort.launch(lambda team: team.all_reduce(np.uint8(200)), 2) == [144, 144]


def test_split_makes_teams_by_colour():
    def program(team):
        part = team.split(team.rank % 2, key=-team.rank)
        total = int(part.all_reduce(team.rank))
        shown = (part.rank, part.size, total)
        nobody = team.split(None)
        pair = team.split(0 if team.rank < 2 else None)
        ranks = None if pair is None else pair.all_gather(team.rank).tolist()
        part.free()
        return shown, nobody, ranks

    results = consort.launch(program, 5)
    assert [shown for shown, _, _ in results] == [
        (2, 3, 6),
        (1, 2, 4),
        (1, 3, 6),
        (0, 2, 4),
        (0, 3, 6),
    ]
    assert all(nobody is None for _, nobody, _ in results)
    assert [ranks for _, _, ranks in results] == [[0, 1], [0, 1], None, None, None]
