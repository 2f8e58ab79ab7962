"""The backend of `torch.distributed` without torch: over a part of its interface (stub/torch)."""

import importlib.util
import os
import sys
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import consort

if importlib.util.find_spec("torch") is not None:
    pytest.skip("torch is installed, and test_torch.py uses it", allow_module_level=True)

LIMIT = timedelta(seconds=60)


@pytest.fixture
def run(tmp_path):
    """Runs a program in processes, with torch and the group, and returns the results by rank."""

    def run(program, size=2, limit=LIMIT):
        def process(team):
            # pytest leaves modules that it could not import when it looked for examples.
            for name in [name for name in sys.modules if name.startswith("consort.torch")]:
                del sys.modules[name]
            sys.path.insert(0, str(Path(__file__).parent / "stub"))
            import torch
            import torch.distributed as dist

            import consort.torch

            make, devices = dist.Backend.registered["consort"]
            assert make is consort.torch.ProcessGroup and devices == ["cpu"]
            store = dist.FileStore(str(tmp_path / "store"), size)
            group = make(store, team.rank, size, limit)
            try:
                assert (group.rank(), group.size()) == (team.rank, size)
                return program(torch, group)
            finally:
                group.shutdown()

        return consort.launch(process, size, processes=True)

    return run


def options(torch, name, **values):
    made = getattr(torch.distributed, f"{name}Options")()
    for key, value in values.items():
        setattr(made, key, value)
    return made


def test_collectives(run):
    def program(torch, group):
        rank, size = group.rank(), group.size()
        op = torch.distributed.ReduceOp

        def tensor(value, length=3, kind="float32"):
            return torch.Tensor(np.full(length, value, kind))

        def check(tensor, *values):
            assert tensor.elements.reshape(-1).tolist() == list(values), tensor.elements

        mine = tensor(rank + 1)
        assert group.allreduce([mine]).wait()
        check(mine, 6, 6, 6)
        group.allreduce([mine], options(torch, "Allreduce", reduceOp=op.AVG)).wait()
        check(mine, 6, 6, 6)
        short = tensor(rank + 1, kind="float16")
        group.allreduce([short], options(torch, "Allreduce", reduceOp=op.MAX)).wait()
        check(short, 3, 3, 3)
        both = [tensor(rank), tensor(rank, kind="int64")]
        group.allreduce_coalesced(both, options(torch, "Allreduce", reduceOp=op.MIN)).wait()
        check(both[0], 0, 0, 0)
        truth = torch.Tensor(np.array([rank == 1, False]))
        group.allreduce([truth]).wait()
        check(truth, True, False)
        mine = tensor(rank)
        group.reduce([mine], options(torch, "Reduce", reduceOp=op.SUM, rootRank=2)).wait()
        check(mine, *[3 if rank == 2 else rank] * 3)
        # Elements that calls do not have, and elements with strides.
        moved = torch.Tensor(np.full((4, 2), rank, "complex64")[:, 0])
        group.broadcast([moved], options(torch, "Broadcast", rootRank=1)).wait()
        check(moved, 1, 1, 1, 1)
        bits = torch.Tensor(np.full(2, rank, "uint16").view("V2"), kind=torch.bfloat16)
        group.broadcast([bits], options(torch, "Broadcast", rootRank=2)).wait()
        assert bits.elements.view("uint16").tolist() == [2, 2]

        apart = [tensor(9, 2) for _ in range(size)]
        whole = torch.Tensor(np.full((size, 2), 9.0, "float32"))
        chunks = [whole._like(row) for row in whole.elements]
        for outputs in (apart, chunks):
            group.allgather([outputs], [tensor(rank, 2)]).wait()
            for one, output in enumerate(outputs):
                check(output, one, one)
        check(whole, 0, 0, 1, 1, 2, 2)
        group.allgather([chunks], [chunks[rank]]).wait()  # in place
        check(whole, 0, 0, 1, 1, 2, 2)
        group.allgather_coalesced([[each] for each in apart], [tensor(rank + 5, 2)]).wait()
        check(apart[2], 7, 7)
        group._allgather_base(whole, tensor(rank + 1, 2)).wait()
        check(whole, 1, 1, 2, 2, 3, 3)
        lists = [chunks] if rank == 1 else []
        group.gather(lists, [tensor(rank, 2)], options(torch, "Gather", rootRank=1)).wait()
        check(whole, *([0, 0, 1, 1, 2, 2] if rank == 1 else [1, 1, 2, 2, 3, 3]))
        for given in (apart, chunks):
            output = tensor(0, 2)
            lists = [given] if rank == 1 else []
            group.scatter([output], lists, options(torch, "Scatter", rootRank=1)).wait()
            check(output, *[rank + 5 if given is apart else rank] * 2)
        for given in (apart, chunks):
            for each in given:
                each.elements[:] = rank + 1
            output = tensor(0, 2)
            group.reduce_scatter([output], [given]).wait()
            check(output, 6, 6)
        group._reduce_scatter_base(output, whole).wait()
        check(output, 6, 6)
        given = torch.Tensor(np.arange(6.0) + 10 * rank)
        output = torch.Tensor(np.zeros(6))
        group.alltoall_base(output, given, [], []).wait()
        check(output, *[2 * rank + each + 10 * one for one in range(3) for each in range(2)])
        group.alltoall_base(output, given, [3 - rank] * 3 if rank else [2] * 3, [])
        return group.barrier().wait()

    with pytest.raises(ValueError, match=r"the lengths \[1, 1, 1\] do not divide 6 rows"):
        run(program, 3)


def test_works_and_futures(run):
    def program(torch, group):
        tensors = [torch.Tensor(np.full(5, float(each))) for each in range(10)]
        works = [group.allreduce([each]) for each in tensors]
        first = works[3].get_future().then(lambda future: future.value()[0].elements[0])
        assert works[-1].wait() and all(work.is_completed() for work in works)
        assert first.wait() == 6.0 and works[0].is_success() and works[0].exception() is None
        assert works[1].result()[0] is tensors[1] and group.barrier().result() == []
        works[1].synchronize()
        group.barrier().wait()

    run(program)


def test_messages(run):
    def program(torch, group):
        rank, other = group.rank(), 1 - group.rank()
        sent = [group.send([torch.Tensor(np.array([tag]))], other, tag) for tag in range(40)]
        for tag in reversed(range(40)):
            received = torch.Tensor(np.array([-1]))
            work = group.recv([received], other, tag)
            assert work.wait() and received.elements[0] == tag and work.source_rank() == other
        for work in sent:
            work.wait()
        if rank == 0:
            group.send([torch.Tensor(np.ones(50_000))], 1).wait()
        else:
            received = torch.Tensor(np.zeros((50_000, 2))[:, 0])
            assert group.recv_anysource([received]).wait() and received.elements.all()
        work = group.send([torch.Tensor(np.ones(2))], other)
        with pytest.raises(ValueError, match=r"16 bytes from process \d does not fit .* 24 bytes"):
            group.recv([torch.Tensor(np.ones(3))], other).wait()
        work.wait()

    run(program)


def test_bad_tensors_and_lists_are_refused(run):
    def program(torch, group):
        rank, op = group.rank(), torch.distributed.ReduceOp
        ones = torch.Tensor(np.ones(3))

        def reduce(tensor, op=op.SUM):
            return group.allreduce([tensor], options(torch, "Allreduce", reduceOp=op))

        for error, match, call in [
            (ValueError, "not on meta: use", lambda: reduce(torch.Tensor(np.ones(3), on="meta"))),
            (ValueError, "not on cuda: use", lambda: reduce(torch.Tensor(np.ones(3), on="cuda"))),
            (
                ValueError,
                "dense tensors",
                lambda: reduce(torch.Tensor(np.ones(3), layout=torch.sparse_coo)),
            ),
            (TypeError, "takes a tensor, not ndarray", lambda: reduce(np.ones(3))),
            (
                ValueError,
                "no operator AVG on torch.int64",
                lambda: reduce(torch.Tensor(np.ones(3, "int64")), op.AVG),
            ),
            (ValueError, "no operator BOR on torch.float64", lambda: reduce(ones, op.BOR)),
            (ValueError, "no operator PREMUL_SUM", lambda: reduce(ones, op.PREMUL_SUM)),
            (
                ValueError,
                "takes one tensor of each process, not 2",
                lambda: group.allreduce([ones, ones]),
            ),
            (
                ValueError,
                "takes a tensor for each of 2 processes, not 1",
                lambda: group.allgather([[ones]], [ones]),
            ),
            (
                ValueError,
                "same number of elements, not 3 and 2",
                lambda: group.allgather([[ones, torch.Tensor(np.ones(2))]], [ones]),
            ),
            (
                TypeError,
                "types torch.float64 and torch.float32",
                lambda: group.allgather([[ones, torch.Tensor(np.ones(3, "float32"))]], [ones]),
            ),
            (
                ValueError,
                "of 5 elements is not that of 2",
                lambda: group._allgather_base(torch.Tensor(np.ones(5)), ones),
            ),
            (
                ValueError,
                "3 rows cannot be divided among 2",
                lambda: group.alltoall_base(ones, ones, [], []),
            ),
            (ValueError, f"process {rank} is not another one", lambda: group.send([ones], rank)),
            (ValueError, "process 7 is not another one", lambda: group.recv([ones], 7)),
        ]:
            with pytest.raises(error, match=match):
                call()
        # The group is as before.
        assert group.allreduce([ones]).wait() and ones.elements.tolist() == [2, 2, 2]

    run(program)


@pytest.mark.parametrize("differ", ["lengths", "types", "operators", "calls", "roots"])
def test_calls_that_differ_are_errors_on_all_processes(run, differ):
    def program(torch, group):
        rank, op = group.rank(), torch.distributed.ReduceOp
        given = np.ones(3 + rank if differ == "lengths" else 3)
        if differ == "types" and rank == 1:
            given = given.astype("float32")
        tensor = torch.Tensor(given)
        if differ == "calls" and rank == 1:
            work = group.barrier()
        elif differ == "roots":
            # The root of a broadcast does not wait, so the next call reports the error.
            group.broadcast([tensor], options(torch, "Broadcast", rootRank=rank))
            work = group.barrier()
        else:
            chosen = op.MAX if differ == "operators" and rank == 1 else op.SUM
            work = group.allreduce([tensor], options(torch, "Allreduce", reduceOp=chosen))
        with pytest.raises(consort.Mismatched):
            work.wait()
        assert not work.is_success() and isinstance(work.exception(), consort.Mismatched)
        with pytest.raises(RuntimeError, match="Mismatched"):
            work.get_future().wait()

    run(program)


def test_caller_that_waits_makes_the_call_itself(run):
    def program(torch, group):
        waits = options(torch, "Allreduce", asyncOp=False)
        started = group.allreduce([torch.Tensor(np.full(1000, 1.0))])
        mine = torch.Tensor(np.full(2, group.rank() + 1.0))
        group.allreduce([mine], waits).wait()  # after the one that was started
        assert started.is_completed() and mine.elements.tolist() == [3, 3]

        def refuse(task):
            raise AssertionError("a call was handed over")

        post, group._threads[0].post = group._threads[0].post, refuse
        work = group.allreduce([mine], waits)
        assert work.wait() and work.is_success() and work.result() is None
        assert work.get_future().wait() is None
        assert mine.elements.tolist() == [6, 6]
        with pytest.raises(TypeError, match="takes a tensor"):
            group.allreduce([1], waits)
        group.all_reduce(mine)
        assert mine.elements.tolist() == [12, 12]
        group.all_reduce(mine, "max")
        assert mine.elements.tolist() == [12, 12]
        with pytest.raises(TypeError, match="takes a tensor"):
            group.all_reduce(1)
        with pytest.raises(ValueError, match="unknown operator 'mean': use one of sum, product"):
            group.all_reduce(mine, "mean")
        group._threads[0].post = post
        group.barrier().wait()

    run(program)


def test_call_now_is_made_after_those_that_were_started(run):
    def program(torch, group):
        started = group.allreduce([torch.Tensor(np.full(100_000, 1.0))])
        strided = torch.Tensor(np.full((3, 2), group.rank() + 1.0)[:, 0])
        group.all_reduce(strided)
        assert started.is_completed() and strided.elements.tolist() == [3, 3, 3]
        with pytest.raises(consort.Mismatched):
            group.all_reduce(torch.Tensor(np.ones(3 + group.rank())))

    run(program)


def test_slow_started_call_fails_the_group_before_it_is_waited_for(run):
    def program(torch, group):
        if group.rank() == 0:
            group.set_timeout(timedelta(seconds=0.2))
            work = group.allreduce([torch.Tensor(np.ones(1))])
        time.sleep(0.7)
        with pytest.raises(consort.PeFailed, match=r"PE 0 failed: all_reduce took longer than"):
            group.barrier().wait()
        if group.rank() == 0:
            with pytest.raises(TimeoutError, match=r"all_reduce took longer than 0\.2 s"):
                work.wait()

    run(program)


def test_slow_call_of_the_caller_fails_the_group(run):
    def program(torch, group):
        if group.rank() == 0:
            group.set_timeout(timedelta(seconds=0.2))
            work = group.barrier(options(torch, "Barrier", asyncOp=False))
            with pytest.raises(TimeoutError, match=r"barrier took longer than 0\.2 s"):
                work.wait()
        time.sleep(0.5)
        with pytest.raises(consort.PeFailed, match=r"PE 0 failed: barrier took longer than"):
            group.barrier().wait()

    run(program)


def test_slow_call_fails_the_group(run):
    def program(torch, group):
        if group.rank() == 0:
            with pytest.raises(TimeoutError, match=r"all_reduce took longer than 0\.2 s"):
                group.allreduce([torch.Tensor(np.ones(1))]).wait(timedelta(seconds=0.2))
        time.sleep(0.5)
        with pytest.raises(consort.PeFailed, match=r"PE 0 failed: all_reduce took longer than"):
            group.barrier().wait()

    run(program)


def test_missing_process_is_named(run):
    def program(torch, group):
        store = torch.distributed.FileStore(f"/dev/shm/consort-store-{os.getpid()}")
        try:
            with pytest.raises(consort.Error, match=r"TimeoutError: processes \[1\] did not join"):
                type(group)(store, 0, 2, timedelta(seconds=0.2))
        finally:
            for path in store._folder.iterdir():
                path.unlink()
            store._folder.rmdir()

    run(program, 1)


def test_forked_child_is_not_in_the_group(run):
    def program(torch, group):
        group.barrier().wait()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                group.allreduce([torch.Tensor(np.ones(1))])
            except consort.Error as error:
                code = 0 if "forked" in str(error) else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        return group.barrier().wait()

    assert run(program) == [True, True]
