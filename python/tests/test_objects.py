"""Collectives and messages on any object."""

import os
import threading

import numpy as np
import pytest

import consort


@pytest.fixture(params=[False, True], ids=["threads", "processes"])
def launch(request):
    return lambda program, pes: consort.launch(program, pes, processes=request.param)


class Point:
    def __init__(self, x):
        self.x = x

    def __eq__(self, other):
        return self.x == other.x

    __hash__ = None


class Unreadable:
    """An object that pickle writes, but only this process reads."""

    def __init__(self, writer):
        self.writer = writer

    def __reduce__(self):
        return _read, (threading.get_ident(), os.getpid())


def _read(thread, process):
    if (thread, process) != (threading.get_ident(), os.getpid()):
        raise ImportError("no such class here")
    return "read"


OBJECTS = [
    None,
    b"",
    [],
    {"a": (1, 2.5), "b": None},
    Point(3),
    np.arange(6).reshape(2, 3),
    "x" * 70_000,
]


def same(one, other):
    return type(one) is type(other) and np.all(one == other)


@pytest.mark.parametrize("value", OBJECTS, ids=lambda value: type(value).__name__)
def test_all_calls_copy_objects(launch, value):
    def program(team):
        rank, size = team.rank, team.size
        got = team.broadcast_object(value if rank == 1 else "ignored", root=1)
        assert same(got, value)
        if not (value is None or type(value) is bytes):  # Python has only one such object
            assert (got is value) == (rank == 1), "only the root keeps its object"
        # Each PE has an object of another length.
        everywhere = team.all_gather_objects([value] * rank)
        gathered = team.gather_objects([value] * rank, root=2)
        assert (gathered is None) == (rank != 2)
        for lists in [everywhere, gathered or everywhere]:
            assert [len(each) for each in lists] == [0, 1, 2]
            assert all(same(each, value) for each in [*lists[1], *lists[2]])
        mine = team.scatter_objects(iter([0, value, value]) if rank == 0 else None)
        assert same(mine, value if rank else 0)
        # Around a ring. A send may wait for its receiver, so PE 0 sends first.
        if rank == 0:
            team.send_object((rank, value), to=1)
        source, received = team.receive_object(source=(rank - 1) % size)
        if rank != 0:
            team.send_object((rank, value), to=(rank + 1) % size)
        assert source == (rank - 1) % size and same(received, value)
        return size

    assert launch(program, 3) == [3, 3, 3]


def test_large_objects(launch):
    def program(team):
        own = bytes([team.rank]) * 10_000_000
        got = team.all_gather_objects(own)
        assert [each[-1] for each in got] == [0, 1] and {len(each) for each in got} == {10_000_000}
        assert team.broadcast_object(own, root=1)[0] == 1
        assert team.scatter_objects([own, b""] if team.rank == 0 else None) == [own, b""][team.rank]
        # One must receive first.
        if team.rank == 0:
            team.send_object(own, to=1)
            return len(team.receive_object(source=1))
        received = team.receive_object(source=0)
        team.send_object(own, to=0)
        return len(received)

    assert launch(program, 2) == [10_000_000] * 2


def test_objects_are_copies_also_between_threads():
    def program(team):
        own = [team.rank]
        everywhere = team.all_gather_objects(own)
        got = team.broadcast_object(own)
        team.barrier()
        got.append("changed")
        team.barrier()
        assert own == ([0, "changed"] if team.rank == 0 else [1])
        return everywhere

    assert consort.launch(program, 2) == [[[0], [1]]] * 2


def test_object_that_cannot_be_pickled_is_an_error_where_it_is_needed(launch):
    text = "PE 1 cannot send its object: cannot pickle"

    def program(team):
        bad = threading.Lock() if team.rank == 1 else 0
        outcomes = []

        def attempt(call):
            try:
                outcomes.append(call())
            except Exception as error:
                assert text in str(error), error
                outcomes.append(type(error).__name__)

        attempt(lambda: team.broadcast_object(bad, root=1))
        attempt(lambda: team.gather_objects(bad, root=2))
        attempt(lambda: team.all_gather_objects(bad))
        attempt(lambda: team.scatter_objects([1, 2, bad] if team.rank == 1 else None, root=1))
        if team.rank == 1:
            attempt(lambda: team.send_object(bad, to=0))
            team.send_object("instead", to=0)
        if team.rank == 0:
            outcomes.append(team.receive_object(source=1))
        assert int(team.all_reduce(1)) == 3, "all PEs make the next call"
        return outcomes

    assert launch(program, 3) == [
        ["Error", None, "Error", 1, "instead"],
        ["TypeError", "TypeError", "TypeError", "TypeError", "TypeError"],
        ["Error", "Error", "Error", "Error"],
    ]


def test_object_that_cannot_be_unpickled_is_an_error_of_its_receiver(launch):
    def program(team):
        got = [str(each) for each in team.gather_objects("fine") or []]
        try:
            team.broadcast_object(Unreadable(team.rank))
            got.append("root")
        except ImportError as error:
            got.append(str(error))
        return [*got, int(team.all_reduce(1))]

    assert launch(program, 2) == [["fine", "fine", "root", 2], ["no such class here", 2]]


def test_pe_that_fails_before_it_sends_ends_the_receivers(launch):
    def program(team):
        if team.rank == 1:
            team.send_object(threading.Lock(), to=0)
        team.receive_object(source=1)

    with pytest.raises(TypeError, match="PE 1 cannot send its object"):
        launch(program, 2)


@pytest.mark.parametrize("root", [-1, 2])
def test_rank_that_is_not_in_the_team_is_refused(launch, root):
    def program(team):
        calls = [
            lambda: team.broadcast_object(1, root=root),
            lambda: team.gather_objects(1, root=root),
            lambda: team.scatter_objects([1, 2], root=root),
            lambda: team.send_object(1, to=root),
            lambda: team.receive_object(source=root),
        ]
        for call in calls:
            with pytest.raises(ValueError, match=f"PE {root} is not in the team"):
                call()
        return team.broadcast_object("next")

    assert launch(program, 2) == ["next", "next"]


def test_root_passes_an_object_for_each_pe():
    for values, error in [([1], ValueError), ([1, 2, 3], ValueError), (None, TypeError)]:
        # The error of the root, or of a PE that receives nothing.
        with pytest.raises((error, consort.Error), match=r"an object|1 objects|3 objects"):
            consort.launch(lambda team, given: team.scatter_objects(given), 2, args=(values,))


@pytest.mark.parametrize("values", [None, [1], map(int, ["1", "two"])])
def test_scatter_without_an_object_for_each_pe_leaves_nobody_waiting(values):
    def program(team, given):
        with pytest.raises(Exception, match=r"an object for each|1 objects|invalid literal"):
            team.scatter_objects(given)
        return int(team.all_reduce(1))

    assert consort.launch(program, 2, args=(values,)) == [2, 2]


def test_roots_that_differ_are_a_mismatch(launch):
    with pytest.raises(consort.Mismatched):
        launch(lambda team: team.broadcast_object(1, root=team.rank), 2)


def test_smaller_teams_and_attachments_have_these_calls(tmp_path):
    def program(team):
        part = team.split(team.rank % 2)
        return part.all_gather_objects({team.rank})

    assert consort.launch(program, 3) == [[{0}, {2}], [{1}], [{0}, {2}]]
    with consort.Attachment(0, 1, f"objects-{os.getpid()}") as attached:
        team = attached.team
        assert team.broadcast_object("a") == "a"
        assert team.all_gather_objects("b") == team.gather_objects("b") == ["b"]
        assert team.scatter_objects(["c"]) == "c"
