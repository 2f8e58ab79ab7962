"""Messages between two PEs."""

import numpy as np
import pytest

import consort


def test_all_send_first_and_then_receive():
    def program(team):
        left, right = (team.rank - 1) % team.size, (team.rank + 1) % team.size
        ghost = np.empty(1000)
        team.send(np.full(1000, team.rank / 2), right)
        return team.receive(ghost, left)[-1]

    assert consort.launch(program, 3) == [1, 0, 0.5]


@pytest.mark.parametrize("dtype", ["float32", "int8", "bool", "uint64"])
@pytest.mark.parametrize("length", [0, 5, 300_000])
def test_both_directions_at_once(dtype, length):
    def program(team):
        left, right = (team.rank - 1) % team.size, (team.rank + 1) % team.size
        own = np.full(length, team.rank % 2, dtype)
        ghost = team.send_receive(own, right, np.empty(length, dtype), left)
        assert (ghost == left % 2).all()
        received = team.start_receive(left, (length, 1), dtype)
        sent = team.start_send(own, right)
        assert sent.wait() is None
        found = received.wait()
        assert found.dtype == dtype and found.shape == (length, 1) and (found == left % 2).all()

    consort.launch(program, 3)


def test_messages_that_do_not_fit_are_reported():
    def other_type(team):
        if team.rank == 0:
            team.send(np.zeros(2), 1)
        else:
            team.receive(np.zeros(2, "int64"), 0)

    with pytest.raises(consort.Mismatched, match="send of 16 bytes of f64 to PE 1"):
        consort.launch(other_type, 2)
    with pytest.raises(ValueError, match="PE 0 sends to itself"):
        consort.launch(lambda team: team.send(np.zeros(1), team.rank), 1)
    with pytest.raises(ValueError, match="PE 2 is not in the team"):
        consort.launch(lambda team: team.receive(np.zeros(1), 2), 2)
