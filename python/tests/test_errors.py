"""Invalid calls raise an exception with the reason on every PE, and never hang."""

import numpy as np
import pytest

import consort


def raises(error, match, program, pes=2):
    with pytest.raises(error, match=match) as raised:
        consort.launch(program, pes)
    return raised.value


@pytest.mark.parametrize(
    ("mine", "others"),
    [
        (np.zeros(3), np.zeros(4)),
        (np.zeros(3, "int64"), np.zeros(3, "float64")),
        (np.zeros(3, "int32"), np.zeros(3, "float32")),
        (np.zeros(8, "uint8"), np.zeros(8, "bool")),
    ],
)
@pytest.mark.parametrize("call", ["all_reduce", "all_gather", "broadcast", "scan"])
def test_different_arrays_are_a_mismatch(call, mine, others):
    def program(team):
        array = mine if team.rank == 0 else others
        words = ("max",) if call in ("all_reduce", "scan") else ()
        return getattr(team, call)(array.copy(), *words)

    error = raises(consort.Mismatched, "PE", program)
    assert error.pe_rank in (0, 1)


def test_different_calls_are_a_mismatch():
    raises(
        consort.Mismatched, "barrier", lambda team: team.barrier() if team.rank else team.scan(1)
    )
    raises(
        consort.Mismatched,
        "called|made|finished|ended",
        lambda team: team.all_reduce(1, "sum" if team.rank else "max"),
    )
    raises(
        consort.Mismatched,
        "called|made|finished|ended",
        lambda team: team.broadcast(1, root=team.rank),
    )
    error = raises(
        consort.Mismatched, "finished", lambda team: team.barrier() if team.rank else None
    )
    assert str(error).startswith("PE 0 finished while PE 1 waits for it in barrier() by ")
    assert ".rs" not in str(error), "the message names a line of the extension"


def test_root_outside_the_team_is_refused():
    for call in ("broadcast", "reduce", "gather"):
        raises(
            ValueError, "PE 2 is not in the team", lambda team, c=call: getattr(team, c)(1, root=2)
        )
    raises(ValueError, "PE -1 is not in the team", lambda team: team.broadcast(1, root=-1))
    raises(TypeError, "the root of a scatter must pass an array", lambda team: team.scatter())
    raises(ValueError, "PE 5 is not", lambda team: team.scatter(root=5, out=np.zeros(2)))


def test_unknown_operators_are_refused():
    raises(
        ValueError,
        "unknown operator 'mean': use one of sum, product",
        lambda team: team.scan(1, "mean"),
    )
    raises(
        ValueError,
        "unknown operator 'xor' on float64: use one of sum, product, min, max",
        lambda team: team.all_reduce(1.0, "xor"),
    )
    raises(ValueError, "unknown operator 'sum' on bool", lambda team: team.reduce(True))
    raises(ValueError, "unknown operator 'mean'", lambda team: team.start_all_reduce(1, "mean"))


@pytest.mark.parametrize("dtype", ["longdouble", "V2", "O", "U3", "M8[s]", ">f8", "f8,i4"])
def test_other_types_are_refused(dtype):
    raises(TypeError, "unsupported array type", lambda team: team.broadcast(np.zeros(3, dtype)))


def test_other_layouts_are_refused():
    whole = np.zeros((4, 4))
    for array in (whole[:, 1], whole.T, whole[::2], np.broadcast_to(np.zeros(1), (4,))):
        raises(ValueError, "contiguous", lambda team, a=array: team.all_gather(a))
    crooked = np.frombuffer(bytes(8 * 4 + 1), dtype=np.uint8)[1:].view("float64")
    raises(ValueError, "aligned", lambda team: team.all_gather(crooked))
    column = np.asfortranarray(np.zeros((3, 3)))
    raises(ValueError, "contiguous", lambda team: team.all_reduce(np.zeros((3, 3)), out=column))


def test_results_that_do_not_fit_are_refused():
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    for out, error, match in [
        (fixed, ValueError, "the result is read-only"),
        (np.zeros(4), ValueError, r"out has shape \(4,\), but the result has shape \(3,\)"),
        (
            np.zeros(3, "float32"),
            TypeError,
            "out has type float32, but the result has type float64",
        ),
        ([0.0] * 3, TypeError, "out must be an array, not list"),
    ]:
        raises(error, match, lambda team, o=out: team.all_reduce(np.zeros(3), out=o))
    raises(ValueError, "read-only", lambda team: team.broadcast(fixed, root=0))
    raises(
        ValueError, r"of shape \(2, ...\), not \(3,\)", lambda team: team.all_to_all(np.zeros(3))
    )
    raises(ValueError, "a block for each PE", lambda team: team.reduce_scatter(1.0))
    raises(ValueError, "a block for each PE", lambda team: team.scatter(np.zeros((3, 2))))


def test_two_calls_cannot_change_an_array():
    shared = np.zeros(1000)
    raises(
        ValueError,
        "is in use by another call",
        lambda team: team.all_reduce(np.ones(1000), out=shared),
    )
    raises(
        ValueError,
        "is in use by another call",
        lambda team: team.all_reduce(shared[:500], out=shared[250:750]),
    )

    def reads(team):
        return team.all_reduce(shared)

    assert (consort.launch(reads, 4)[3] == 0).all()


def test_invalid_teams_are_refused():
    raises(ValueError, "invalid colour -1", lambda team: team.split(-1))
    raises(ValueError, "cannot be freed", lambda team: team.free())

    def uses_freed(team):
        part = team.split(0)
        part.free()
        part.barrier()

    raises(consort.Error, "has been freed", uses_freed)


def test_pe_continues_after_a_caught_error():
    def program(team):
        with pytest.raises(ValueError):
            team.all_reduce(np.zeros((2, 2))[:, 1])
        with pytest.raises(TypeError):
            team.all_gather(object())
        return int(team.all_reduce(1))

    assert consort.launch(program, 3) == [3, 3, 3]
