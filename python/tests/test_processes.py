"""PEs that are processes: those that something else has started, and those of `launch`."""

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import consort

FORK = multiprocessing.get_context("fork")
NUMBERS = itertools.count()


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


def start(text, session=False):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        start_new_session=session,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


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
    print(*consort.launch(add, 2, args=(30,), processes=method))
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_python_become_pes(method, name, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(WORKERS)
    words = [sys.executable, program, method, name]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
    assert (ended.stdout.split(), ended.stderr) == (["30"] * 2 + ["60"] * 4 + ["90"] * 2, "")


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


def new_address():
    """Returns an address that no other test has: each process has its own of this machine."""
    own = (os.getpid() + 1).to_bytes(3, "big")
    return f"127.{own[0] | 64}.{own[1]}.{own[2]}:{20_000 + next(NUMBERS)}"


def test_processes_meet_at_an_address():
    address = new_address()
    calls = [lambda rank=rank: consort.attach(work, rank, 3, address=address) for rank in range(3)]
    assert outcomes(*calls) == [6, 6, 6]
    assert outcomes(*calls) == [6, 6, 6], "the address is free again"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_meet_by_a_file_that_they_inherit(method):
    receiver, sender = os.pipe()
    numbers = [receiver, os.fdopen(os.dup(receiver), closefd=True)]
    if method == "fork":
        calls = [
            lambda rank=rank: consort.attach(work, rank, 2, descriptor=numbers[rank])
            for rank in range(2)
        ]
        assert outcomes(*calls) == [3, 3]
    else:
        text = (
            "import sys, consort; rank, number = map(int, sys.argv[1:]);"
            "add = lambda team: team.all_reduce(1);"
            "print(consort.attach(add, rank, 2, descriptor=number))"
        )
        both = [
            subprocess.Popen(
                [sys.executable, "-c", text, str(rank), str(receiver)],
                pass_fds=[receiver],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(2)
        ]
        assert [one.communicate(timeout=100) for one in both] == [("2\n", "")] * 2
    numbers[1].close()
    for number in (receiver, sender):
        os.close(number)


def test_attachment_meets_in_each_way():
    receiver, sender = os.pipe()
    for way in ({"address": new_address()}, {"descriptor": receiver}):
        with consort.Attachment(0, 1, **way) as attached:
            assert work(attached.team) == 1
    for number in (receiver, sender):
        os.close(number)


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


@pytest.fixture(params=["name", "address", "descriptor"])
def way(request, name):
    """Each way to meet that needs no function, as arguments."""
    receiver, sender = os.pipe()
    yield {"name": {"name": name}, "address": {"address": new_address()}}.get(
        request.param, {"descriptor": receiver}
    )
    for number in (receiver, sender):
        os.close(number)


def test_sizes_that_differ_are_refused(way):
    for error in outcomes(
        lambda: consort.attach(work, 0, 2, **way), lambda: consort.attach(work, 1, 3, **way)
    ):
        assert isinstance(error, consort.Error)
        assert "give all the same size" in str(error), error


def test_rank_that_two_processes_have_is_refused(way):
    for error in outcomes(*[lambda: consort.attach(work, 1, 3, **way)] * 2):
        assert isinstance(error, consort.Error)
        assert "both want to be PE 1" in str(error), error


def test_process_that_never_joins_is_named(way):
    with pytest.raises(consort.Error, match=r"PE 1 did not join .* within 200ms") as raised:
        consort.attach(work, 0, 2, **way, timeout=0.2)
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
        with pytest.raises(ValueError, match="attach needs a rank, a size, and one of name, ad"):
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
    with pytest.raises(ValueError, match="and one of name"):
        consort.attach(work, 0, 1, name, address="127.0.0.1:20000")
    for way, error, match in [
        ({"address": "here"}, consort.Error, "invalid address `here`.*use HOST:PORT"),
        ({"descriptor": 99_999}, consort.Error, "descriptor 99999 is not open in this process"),
        ({"descriptor": "3"}, TypeError, "descriptor must be a number, or a file"),
    ]:
        with pytest.raises(error, match=match):
            consort.attach(work, 0, 1, **way)
    with pytest.raises(TypeError, match="attach needs a function that takes a team"):
        consort.attach(0, 1, name)


def test_forked_child_cannot_use_the_team(name):
    def program(team):
        (error,) = outcomes(team.barrier)
        assert isinstance(error, consort.Error) and "forked" in str(error), error
        return work(team)

    calls = [lambda rank=rank: consort.attach(program, rank, 2, name) for rank in range(2)]
    assert outcomes(*calls) == [3, 3]


def test_launched_processes_return_their_results():
    data = np.arange(4)

    def program(team, scale):
        data[team.rank] = -1  # in this process alone
        total = team.all_reduce(np.full(100_000, team.rank * scale))
        return team.rank, os.getpid(), work(team), total, int((data < 0).sum())

    results = consort.launch(program, np.int64(3), args=[2], processes=True)
    assert [rank for rank, *_ in results] == [0, 1, 2]
    assert len({os.getpid(), *(process for _, process, *_ in results)}) == 4
    assert [done for _, _, done, *_ in results] == [6, 6, 6]
    assert all((total == 6).all() and changed == 1 for *_, total, changed in results)
    assert (data == np.arange(4)).all()


class Slow(LookupError):
    """An exception that comes after those of the other PEs."""

    def __reduce__(self):
        time.sleep(0.2)
        return LookupError, self.args


def test_exception_of_a_launched_process_is_raised():
    def program(team):
        if team.rank == 1:
            raise Slow("nothing there")
        team.barrier()

    before = left()
    with pytest.raises(LookupError, match="nothing there") as raised:
        consort.launch(program, 3, processes=True)
    assert left() == before, "the traceback keeps nothing open"
    assert raised.value.pe_rank == 1
    note, text = raised.value.__notes__
    assert note == "raised by PE 1 of 3"
    assert 'raise Slow("nothing there")' in text
    with pytest.raises(SystemExit):
        consort.launch(lambda team: sys.exit(3), 2, processes=True)
    with pytest.raises(consort.Mismatched, match="PE 1 finished while PE 0 waits"):
        consort.launch(lambda team: team.rank or team.barrier(), 2, processes=True)


class Strange(Exception):
    """An exception that pickle writes, but cannot read."""

    def __init__(self, one, other):
        super().__init__(f"{one} and {other}")


def test_outcomes_that_cannot_be_pickled_are_reported():
    def program(team):
        raise Strange(1, 2)

    with pytest.raises(consort.Error, match="Strange: 1 and 2") as raised:
        consort.launch(program, 1, processes=True)
    assert raised.value.pe_rank == 0
    assert "raise Strange(1, 2)" in raised.value.__notes__[-1]
    with pytest.raises(TypeError, match=r"PE 0 cannot send its result: Can't .*local object"):
        consort.launch(lambda team: program, 1, processes=True)
    # In a child, because `multiprocessing` keeps a process for the next spawn.
    (error,) = outcomes(lambda: consort.launch(program, 2, processes="spawn"))
    assert "local object" in str(error)
    with pytest.raises(ValueError, match="cannot find context for 'threads'"):
        consort.launch(program, 2, processes="threads")


@pytest.mark.parametrize(
    ("ends", "how"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "was killed by SIGKILL"),
        (lambda: os._exit(3), "exited with code 3"),
    ],
)
def test_launched_process_that_dies_is_named(ends, how, tmp_path):
    is_named = tmp_path / "is named"

    def live_on():
        until = time.monotonic() + 60
        while not is_named.exists() and time.monotonic() < until:
            time.sleep(0.01)
        os._exit(0)

    def program(team):
        team.barrier()
        if team.rank == 1:
            if os.fork() == 0:
                live_on()
            ends()
        if team.rank == 2:
            time.sleep(1000)  # the launch ends it
        team.barrier()

    began = time.monotonic()
    with pytest.raises(consort.PeFailed, match=f"PE 1 failed: its process {how}") as raised:
        consort.launch(program, 3, processes=True)
    is_named.touch()
    assert raised.value.pe_rank == 1
    assert time.monotonic() - began < 50


#: Launches processes that print their numbers, and then only wait.
WAITS = """
    import consort, os, time
    def program(team):
        os.write(1, f"{os.getpid()}\\n".encode())
        time.sleep(1000)
    try:
        consort.launch(program, 2, processes=True)
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_ctrl_c_interrupts_all_processes():
    process = start(
        """
        import consort, os
        consort._processes._GRACE = 50.0  # for a busy machine
        def program(team):
            try:
                os.write(1, b"begun\\n")
                while True:
                    team.barrier()
            except KeyboardInterrupt:
                os.write(1, b"ends\\n")
                raise
        try:
            consort.launch(program, 2, processes=True)
        except KeyboardInterrupt:
            print("interrupted")
        """,
        session=True,
    )
    for _ in range(2):
        assert process.stdout.readline() == "begun\n"
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    out, error = process.communicate(timeout=60)
    # A call of the other PE may have failed before the PE was interrupted.
    assert out in ("ends\ninterrupted\n", "ends\nends\ninterrupted\n"), out
    assert error == ""


@pytest.mark.parametrize(("sent", "out"), [("SIGINT", "interrupted\n"), ("SIGKILL", "")])
def test_processes_end_with_their_launch(sent, out):
    process = start(WAITS)
    children = [process.stdout.readline().strip() for _ in range(2)]
    process.send_signal(signal.Signals[sent])
    assert process.communicate(timeout=60) == (out, "")
    until = time.monotonic() + 60
    while any(is_running(child) for child in children):
        assert time.monotonic() < until, "a process is left"
        time.sleep(0.01)


def is_running(process):
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rsplit(")")[-1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def attachments(program, name, pes=2):
    """Runs `program(attachment)` in forked processes, and returns the outcomes."""

    def call(rank):
        with consort.Attachment(rank, pes, name) as attached:
            return program(attached)

    return outcomes(*[lambda rank=rank: call(rank) for rank in range(pes)])


def test_attachment_keeps_its_team(name):
    def program(attached):
        assert (attached.team.rank, attached.team.size) in [(0, 3), (1, 3), (2, 3)]
        results = [work(attached.team) for _ in range(3)]
        with pytest.raises(ValueError, match="PE 7 is not in the team"):
            attached.team.broadcast(1, root=7)
        return [*results, work(attached.team)]

    assert attachments(program, name, pes=3) == [[6] * 4] * 3


def test_threads_share_an_attachment(name):
    def program(attached):
        are_started = threading.Event()

        def add():
            pending = [
                attached.team.start_send([each], 1 - attached.team.rank) for each in range(9)
            ]
            are_started.set()
            for each in pending:
                each.wait()

        thread = threading.Thread(target=add)
        thread.start()
        assert are_started.wait(60)  # a receive of the other thread waits meanwhile
        received = [
            attached.team.receive(np.zeros(1, int), 1 - attached.team.rank)[0] for _ in "9" * 9
        ]
        thread.join()
        return [int(each) for each in received]

    assert attachments(program, name) == [list(range(9))] * 2


def test_threads_make_calls_of_an_attachment_in_turn(name):
    def program(attached):
        sums = []

        def add():
            for _ in range(200):
                sums.append(int(attached.team.all_reduce(1)))

        threads = [threading.Thread(target=add) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return set(sums), len(sums)

    assert attachments(program, name) == [({2}, 600)] * 2


def test_any_thread_frees_memory_of_an_attachment(name):
    def program(attached):
        done = []

        def use():
            memory = attached.team.symmetric(1 << 23)  # an eighth of the heap
            memory.put(np.ones(1), to=attached.team.rank)
            done.append(attached.team.rank)

        for _ in range(20):
            thread = threading.Thread(target=use)
            thread.start()
            thread.join()
        return len(done)

    assert attachments(program, name) == [20, 20]


def test_calls_progress_while_the_thread_of_an_attachment_is_idle(name):
    def idle(attached):
        request = attached.team.start_all_reduce(np.full(100_000, attached.team.rank + 1))
        deadline = time.monotonic() + 60
        while attached._thread._polls and time.monotonic() < deadline:
            time.sleep(0.001)
        assert not attached._thread._polls
        return int(request.wait()[0])

    assert attachments(idle, name) == [3, 3]


def test_exception_in_an_attachment_is_an_error_on_the_others(name):
    def program(attached):
        if attached.team.rank == 1:
            raise LookupError("nothing there")
        attached.team.barrier()

    follows, first = attachments(program, name)
    assert type(first) is LookupError
    assert (type(follows), follows.pe_rank) == (consort.PeFailed, 1)
    assert str(follows) == "PE 1 failed: LookupError: nothing there"


def test_killed_process_is_an_error_in_an_attachment(name):
    def call(rank):
        with consort.Attachment(rank, 2, name) as attached:
            attached.team.barrier()
            if rank == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            attached.team.barrier()

    both = [begin(lambda rank=rank: call(rank)) for rank in range(2)]
    error = both[0][1].recv()
    assert isinstance(error, consort.PeFailed) and error.pe_rank == 1
    for one in both:
        end(*one)


def test_attachment_that_is_closed_early_is_a_mismatch(name):
    def program(attached):
        if attached.team.rank == 0:
            attached.team.barrier()

    for error in attachments(program, name):
        assert isinstance(error, consort.Mismatched)
        assert str(error).startswith("PE 1 finished while PE 0 waits for it in barrier()")


def test_closed_attachment_refuses_calls(name):
    attached = consort.Attachment(0, 1, name)
    team = attached.team
    memory, request = team.symmetric(4), team.start_all_reduce(1)
    assert repr(attached) == "<consort.Attachment: PE 0 of 1>"
    (error,) = outcomes(team.barrier)
    assert isinstance(error, consort.Error) and "forked from a PE" in str(error)
    attached.close()
    attached.close()
    for call in (team.barrier, lambda: memory.get(0), request.wait):
        with pytest.raises(consort.Error, match="the attachment is closed"):
            call()
    assert consort.attach(work, 0, 1, name) == 1, "the name is free again"
    with pytest.raises(consort.Error, match=r"PE 1 did not join .* within 200ms"):
        consort.Attachment(0, 2, name, timeout=0.2)
    with pytest.raises(ValueError, match="attach needs a rank"):
        consort.Attachment(0)


#: A process with an attachment that the end of the interpreter closes.
LEAVES = """
    import consort, os, sys
    attached = consort.Attachment({rank}, 2, {name!r})
    print(attached.team.all_reduce(1), flush=True)
"""


def test_end_of_the_interpreter_closes_an_attachment(name):
    both = [start(LEAVES.format(rank=rank, name=name)) for rank in range(2)]
    assert [one.communicate(timeout=60) for one in both] == [("2\n", "")] * 2
    assert [one.returncode for one in both] == [0, 0]
    texts = [
        LEAVES + "    raise LookupError('nothing there')",
        LEAVES + "    attached.team.barrier()",
    ]
    both = [start(text.format(rank=rank, name=name)) for rank, text in enumerate(texts)]
    for one in both:
        assert one.communicate(timeout=60)[1].endswith("LookupError: nothing there\n")


def test_ctrl_c_interrupts_a_call_of_an_attachment(name):
    waits = """
    import numpy, time
    team = attached.team
    try:
        with attached:
            print("waits", flush=True)
            if team.rank == 0:
                team.receive(numpy.zeros(1), 1)
            while True:
                team.progress()
                time.sleep(0.01)
    except BaseException as error:
        print(type(error).__name__, error)
    """
    both = [start((LEAVES + waits).format(rank=rank, name=name)) for rank in range(2)]
    for one in both:
        assert [one.stdout.readline() for _ in range(2)] == ["2\n", "waits\n"]
    both[0].send_signal(signal.SIGINT)
    outs = [one.communicate(timeout=60) for one in both]
    assert outs == [
        ("KeyboardInterrupt \n", ""),
        ("PeFailed PE 0 failed: KeyboardInterrupt\n", ""),
    ]


@pytest.mark.parametrize("pes", [2, 3])
@pytest.mark.parametrize("kind", ["float64", "float16"])
def test_long_calls_are_made_in_pieces(pes, kind):
    length = 900_001  # more than a MiB, and not whole pieces

    def program(team):
        like = np.arange(length) % 61
        given, rank = like.astype(kind), team.rank
        out = np.zeros(length, kind)
        assert (team.all_reduce(given) == like * pes).all()
        assert (team.scan(given, out=out) == like * (rank + 1)).all()
        team.exclusive_scan(given, out=out)
        assert rank == 0 or (out == like * rank).all()
        result = team.reduce(given, root=1)
        assert result is None if rank != 1 else (result == like * pes).all()
        for call, expected in [(team.all_reduce, pes), (team.scan, rank + 1)]:
            mine = given.copy()
            assert (call(mine, out=mine) == like * expected).all()
        mine = given.copy()
        team.reduce(mine, out=mine)
        assert (mine == like * (pes if rank == 0 else 1)).all()
        return True

    assert consort.launch(program, pes, processes=True) == [True] * pes

    def mismatched(team):  # but the first pieces are alike
        team.all_reduce(np.ones((2 << 20) * (team.rank + 1), kind))

    with pytest.raises(
        consort.Mismatched, match=r"all_reduce\(\d+ bytes .* in pieces of \d+ bytes"
    ):
        consort.launch(mismatched, pes, processes=True)
