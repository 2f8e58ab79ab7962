"""PEs that are processes, which something else has started."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import consort

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def name(tmp_path):
    return f"test-{os.getpid()}-{tmp_path.name}"[:90]


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = left()
    yield
    # The thread that watches other processes ends soon after them.
    until = time.monotonic() + 20
    while left() != before and time.monotonic() < until:
        time.sleep(0.01)
    assert left() == before


def left():
    """Returns the files, descriptors and children that a job may leave behind."""
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
        children = file.read().split()
    files = {file for file in os.listdir("/dev/shm") if "consort" in file}
    return files, len(os.listdir("/proc/self/fd")), children


def work(team):
    """Uses each kind of call."""
    rank, size = team.rank, team.size
    assert (team.all_reduce(np.full(1000, rank)) == sum(range(size))).all()
    memory = team.symmetric(4, dtype="int64")
    memory.put(np.full(4, rank), to=(rank + 1) % size)
    memory.quiet()
    team.barrier()
    assert (memory.get(rank) == (rank - 1) % size).all()
    received = team.send_receive([rank], (rank + 1) % size, np.zeros(1, int), (rank - 1) % size)
    assert received[0] == (rank - 1) % size
    half = team.split(rank % 2)
    assert int(half.all_reduce(1)) == half.size
    return int(team.start_all_reduce(rank + 1).wait())


def outcomes(*calls):
    """Makes each call in a forked process. Returns the results and exceptions."""
    processes = [begin(call) for call in calls]
    received = [receiver.recv() for _, receiver in processes]
    for process, receiver in processes:
        end(process, receiver)
    return received


def begin(call):
    receiver, sender = FORK.Pipe(duplex=False)

    def attempt():
        try:
            sender.send(call())
        except Exception as error:
            sender.send(error)

    with sender:
        process = FORK.Process(target=attempt)
        process.start()
    return process, receiver


def end(process, receiver):
    receiver.close()
    process.join()
    process.close()


#: Starts processes in each way of a start method.
WORKERS = """
import multiprocessing, sys
from concurrent.futures import ProcessPoolExecutor
import consort

def add(team, scale):
    return int(team.all_reduce(team.rank + 1)) * scale

def show(rank, name):
    print(consort.attach(add, rank, 2, name, args=(10,)), flush=True)

if __name__ == "__main__":
    method, name = sys.argv[1:]
    context = multiprocessing.get_context(method)
    workers = [context.Process(target=show, args=(rank, name)) for rank in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        for again in range(2):  # a worker may become a PE again
            words = [(consort.attach, add, rank, 2, f"{name}-{again}", (20,)) for rank in range(2)]
            tasks = [pool.submit(*each) for each in words]
            print(*[task.result() for task in tasks])
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_python_become_pes(method, name, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WORKERS)
    words = [sys.executable, program, method, name]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.stdout.split(), ended.stderr) == (["30"] * 2 + ["60"] * 4, "")


def test_processes_of_a_shell_become_pes(name):
    text = (
        "import sys, consort;"
        "print(consort.attach(lambda team: team.all_reduce(1), int(sys.argv[1]), 2, sys.argv[2]))"
    )
    script = 'for rank in 0 1; do "$0" -c "$1" $rank "$2" & done; wait'
    words = ["sh", "-c", script, sys.executable, text, name]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.stdout.split(), ended.stderr) == (["2"] * 2, "")


OF_LAUNCHERS = {
    "torchrun": {"RANK": "{}", "WORLD_SIZE": "3", "LOCAL_WORLD_SIZE": "3", "MASTER_PORT": "pid"},
    "srun": {
        "SLURM_PROCID": "{}",
        "SLURM_STEP_NUM_TASKS": "3",
        "SLURM_STEP_NUM_NODES": "1",
        "SLURM_JOB_ID": "pid",
        "SLURM_STEP_ID": "0",
    },
}


@pytest.mark.parametrize("launcher", OF_LAUNCHERS)
def test_processes_of_a_launcher_become_pes(launcher):
    def call(rank):
        for variable, value in OF_LAUNCHERS[launcher].items():
            # The library reads the variables of the system, and not Python's copy.
            os.environ[variable] = value.format(rank).replace("pid", str(os.getppid()))
        return consort.attach(lambda team: team.all_gather(team.rank).tolist())

    assert outcomes(*[lambda rank=rank: call(rank) for rank in range(3)]) == [[0, 1, 2]] * 3


def test_processes_meet_by_a_function_that_exchanges_bytes():
    ends = FORK.Pipe()

    def call(rank):
        def all_gather(own):
            ends[rank].send(own)
            return [own, ends[rank].recv()]

        return consort.attach(work, rank, 2, all_gather=all_gather)

    assert outcomes(lambda: call(0), lambda: call(1)) == [3, 3]
    for one in ends:
        one.close()
    with pytest.raises(consort.Error, match="did not meet: LookupError: no network"):

        def fails(own):
            raise LookupError("no network")

        consort.attach(work, 0, 2, all_gather=fails)


def test_process_can_be_a_pe_of_several_jobs(name):
    def outer(team):
        inner = consort.attach(work, team.rank, team.size, f"{name}-inner")
        return inner + int(team.all_reduce(1)) + sum(consort.launch(work, 2))

    calls = [lambda rank=rank: consort.attach(outer, rank, 2, name) for rank in range(2)]
    assert outcomes(*calls) == [11, 11]


@pytest.mark.parametrize("victim", [0, 1])
def test_killed_process_is_an_error_on_the_other(victim, name):
    def program(team):
        team.barrier()
        if team.rank == victim:
            os.kill(os.getpid(), signal.SIGKILL)
        began = time.monotonic()
        with pytest.raises(consort.PeFailed) as raised:
            while True:
                team.barrier()
        assert "ended before the end of its program" in str(raised.value)
        assert time.monotonic() - began < 20, "it takes milliseconds on a machine that is not busy"
        raise raised.value

    all_pes = [begin(lambda r=r: consort.attach(program, r, 2, name)) for r in range(2)]
    error = all_pes[1 - victim][1].recv()
    assert isinstance(error, consort.PeFailed) and error.pe_rank == victim
    for one in all_pes:
        end(*one)


def test_exception_of_a_process_is_an_error_on_the_other(name):
    def program(team):
        if team.rank == 1:
            raise LookupError("nothing there")
        team.barrier()

    calls = [lambda rank=rank: consort.attach(program, rank, 2, name) for rank in range(2)]
    follows, first = outcomes(*calls)
    assert (type(first), first.pe_rank) == (LookupError, 1)
    assert (type(follows), follows.pe_rank) == (consort.PeFailed, 1)
    assert str(follows) == "PE 1 failed: LookupError: nothing there"


def test_process_that_ends_early_is_a_mismatch(name):
    def program(team):
        if team.rank == 0:
            team.barrier()

    calls = [lambda rank=rank: consort.attach(program, rank, 2, name) for rank in range(2)]
    for error in outcomes(*calls):
        assert isinstance(error, consort.Mismatched)
        assert str(error).startswith("PE 1 finished while PE 0 waits for it in barrier()")


def test_sizes_that_differ_are_refused(name):
    for error in outcomes(
        lambda: consort.attach(work, 0, 2, name), lambda: consort.attach(work, 1, 3, name)
    ):
        assert isinstance(error, consort.Error)
        assert "give all the same size" in str(error), error


def test_process_that_never_comes_is_named(name):
    with pytest.raises(consort.Error, match="PE 1 did not come within 200ms") as raised:
        consort.attach(work, 0, 2, name, timeout=0.2)
    assert "raise the limit with `timeout`" in str(raised.value)


def test_name_in_use_is_refused(name):
    def program(team):
        with pytest.raises(consort.Error, match="has been in use for 200ms by a job"):
            consort.attach(work, 0, 1, name, timeout=0.2)
        return "refused"

    assert consort.attach(program, 0, 1, name) == "refused"
    assert consort.attach(work, 0, 1, name) == 1, "the name is free again"


def test_invalid_arguments_are_refused(name, monkeypatch):
    for words in [(0,), (0, 2), (None, 2, name), (0, 2, name)]:
        with pytest.raises(ValueError, match="attach needs a rank, a size, and either a name or"):
            consort.attach(work, *words, all_gather=list if len(words) == 3 else None)
    for variables in OF_LAUNCHERS.values():
        for variable in variables:
            monkeypatch.delenv(variable, raising=False)
    with pytest.raises(ValueError, match="neither torchrun nor srun has started this process"):
        consort.attach(work)
    for place, match in [((2, 2), "PE 2 is not in"), ((-1, 2), "PE -1"), ((0, 0), "PEs 0: use 1")]:
        with pytest.raises(ValueError, match=match):
            consort.attach(work, *place, name)
    for timeout in (-1, float("nan")):
        with pytest.raises(ValueError, match="use a number of seconds"):
            consort.attach(work, 0, 1, name, timeout=timeout)
    with pytest.raises(consort.Error, match='invalid name "" of a job: use 1 to 90 bytes'):
        consort.attach(work, 0, 1, "")
    with pytest.raises(TypeError, match="attach needs a function that takes a team"):
        consort.attach(0, 1, name)


def test_forked_child_cannot_use_the_team(name):
    def program(team):
        (error,) = outcomes(team.barrier)
        assert isinstance(error, consort.Error) and "forked" in str(error), error
        return work(team)

    calls = [lambda rank=rank: consort.attach(program, rank, 2, name) for rank in range(2)]
    assert outcomes(*calls) == [3, 3]
