"""Launches: results, exceptions, threads, signals, memory."""

import gc
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import consort


def test_results_are_by_rank():
    assert consort.launch(lambda team: (team.rank, team.size), 3) == [(0, 3), (1, 3), (2, 3)]
    assert len(consort.launch(lambda team: None)) >= 1
    assert consort.launch(lambda team, a, b: a + b, np.int64(1), args=[1, 2]) == [3]


@pytest.mark.parametrize(
    ("pes", "error"), [(0, ValueError), (-1, ValueError), (5000, ValueError), (1.5, TypeError)]
)
def test_invalid_numbers_of_pes_are_refused(pes, error):
    with pytest.raises(error):
        consort.launch(lambda team: None, pes)


def test_launch_needs_a_function():
    with pytest.raises(TypeError, match="launch needs a function that takes a team"):
        consort.launch(3, 2)


def test_the_first_exception_is_raised_with_its_rank():
    seen = []

    def program(team):
        if team.rank == 2:
            raise LookupError("nothing there")
        try:
            team.barrier()
        except consort.PeFailed as error:
            seen.append(str(error))
            raise

    with pytest.raises(LookupError, match="nothing there") as raised:
        consort.launch(program, 4)
    assert raised.value.pe_rank == 2
    assert raised.value.__notes__ == ["raised by PE 2 of 4"]
    assert len(seen) == 3 and all("PE 2 failed: LookupError: nothing there" in one for one in seen)
    assert "program" in [entry.name for entry in raised.traceback]


def test_failed_launch_raises_if_peers_continue():
    def program(team):
        if team.rank == 0:
            raise ValueError("early")
        try:
            team.barrier()
        except consort.Error:
            return "went on"

    with pytest.raises(ValueError, match="early"):
        consort.launch(program, 2)


def test_exit_of_a_pe_is_raised():
    with pytest.raises(SystemExit):
        consort.launch(lambda team: sys.exit(3), 2)


def test_waiting_pe_releases_the_interpreter():
    """If a PE kept the interpreter's lock in a barrier, the other PE could not reach it."""
    order = []

    def program(team):
        if team.rank == 1:
            time.sleep(0.1)
        order.append(team.rank)
        team.barrier()
        for _ in range(100):
            team.barrier()
        return threading.get_ident()

    threads = consort.launch(program, 2)
    assert order == [0, 1]
    assert len({*threads, threading.get_ident()}) == 3


def test_other_threads_run_during_a_call():
    count, ends = [0], threading.Event()

    def counts():
        while not ends.is_set():
            count[0] += 1

    thread = threading.Thread(target=counts)
    thread.start()
    try:
        seen = consort.launch(
            lambda team: (team.rank and time.sleep(0.2), team.barrier(), count[0])[2], 2
        )
    finally:
        ends.set()
        thread.join()
    assert min(seen) > 1000


def test_pes_and_threads_can_launch():
    def inner(team):
        return int(team.all_reduce(team.rank + 1))

    def outer(team):
        return sum(consort.launch(inner, 2)) + int(team.all_reduce(1))

    assert consort.launch(outer, 2) == [8, 8]
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(consort.launch(inner, 3))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [[6, 6, 6]] * 3


def test_team_belongs_to_its_pe():
    kept = []

    def program(team):
        kept.append((team, team.start_barrier()))
        team.barrier()
        if team.rank == 0:
            other = next(other for other, _ in kept if other.rank == 1)
            assert other is not team

    consort.launch(program, 2)
    team, request = kept[0]
    assert (team.size, repr(team)[:14]) == (2, "<consort.Team:")
    for use in (team.barrier, team.progress, request.wait, lambda: team.all_reduce(1)):
        with pytest.raises(consort.Error, match="not after launch"):
            use()

    def foreign(team):
        with pytest.raises(consort.Error, match="only a PE's thread"):
            kept[0][0].barrier()
        caught = []

        def use():
            try:
                team.barrier()
            except consort.Error as error:
                caught.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        return caught

    for caught in consort.launch(foreign, 2):
        assert len(caught) == 1 and "only a PE's thread" in caught[0]


def run(program, **options):
    words = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )


@pytest.mark.parametrize(
    "body",
    [
        "while True: pass",
        "while True: team.barrier()",
        "team.barrier() if team.rank else [0 for _ in iter(int, 1)]",
    ],
)
def test_ctrl_c_ends_all(body):
    process = run(
        f"""
        import consort
        def program(team):
            team.barrier()
            if team.rank == 0:
                print("begun", flush=True)
            {body}
        try:
            consort.launch(program, 2)
        except KeyboardInterrupt:
            print("interrupted", consort.launch(lambda team: team.rank, 2))
        """
    )
    assert process.stdout.readline() == "begun\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=30)
    assert (out, process.returncode) == ("interrupted [0, 1]\n", 0), error


def test_a_second_ctrl_c_does_not_wait():
    process = run(
        """
        import consort, os, time
        def program(team):
            if team.rank == 0:
                print("begun", flush=True)
            time.sleep(60)
        try:
            consort.launch(program, 2)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
            os._exit(0)
        """
    )
    assert process.stdout.readline() == "begun\n"
    for _ in range(2):
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=20)
    assert (out, process.returncode) == ("interrupted\n", 0), error


def test_memory_does_not_grow():
    data = np.ones(1000)

    def program(team):
        team.split(team.rank % 2)
        team.start_all_reduce(data)
        with pytest.raises(ValueError):
            team.reduce(data, "no such")
        return team.all_reduce(data).copy()

    def resident():
        gc.collect()
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    for _ in range(30):
        consort.launch(program, 3)
    before = resident()
    for _ in range(100):
        consort.launch(program, 3)
    assert resident() - before < 100 * 8000, "it grows by less than an array per launch"
    threads = os.listdir("/proc/self/task")
    assert len(threads) < 20, "launches left threads behind"


def test_exceptions_do_not_leak():
    class Kept:
        count = 0

        def __init__(self):
            Kept.count += 1

        def __del__(self):
            Kept.count -= 1

    def program(team, kept):
        mine = Kept()
        if team.rank == 1:
            raise ValueError(mine)
        team.barrier()

    for _ in range(20):
        with pytest.raises(ValueError):
            consort.launch(program, 3, (Kept(),))
    for _ in range(3):
        consort.launch(lambda team: None, 2)
        gc.collect()
    assert Kept.count == 0
