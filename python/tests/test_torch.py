"""The backend of `torch.distributed`, compared with gloo."""

import importlib.util
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

import consort

torch = pytest.importorskip("torch", reason="torch is not installed")

# Once, because each forked process would import it.
pytest.importorskip("torch._dynamo")

import torch.distributed as dist  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

import consort.torch  # noqa: E402

LIMIT = timedelta(seconds=60)
INTEGERS = [torch.uint8, torch.int8, torch.int32, torch.int64]
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
OPERATORS = [dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MIN, dist.ReduceOp.MAX]


@pytest.fixture(autouse=True)
def nothing_is_left(tmp_path):  # which makes its folder first
    def left():
        names = [*os.listdir("/dev/shm"), *os.listdir(tempfile.gettempdir())]
        return sorted(name for name in names if not name.startswith("torch"))  # torch's caches

    before = left()
    yield
    assert left() == before


@pytest.fixture
def run(tmp_path):
    """Runs a program in processes with a process group, and returns the results by rank."""

    def run(program, size=2):
        def process(team):
            os.environ["GLOO_SOCKET_IFNAME"] = "lo"
            torch.set_num_threads(1)
            store = dist.FileStore(str(tmp_path / "store"), size)
            place = {"rank": team.rank, "world_size": size}
            dist.init_process_group("consort", store=store, timeout=LIMIT, **place)
            try:
                return program(team.rank)
            finally:
                dist.destroy_process_group()

        return consort.launch(process, size, processes=True)

    return run


def draw(seed, shape, dtype):
    """Returns the tensor of a seed, whose small integers have exact sums and products."""
    numbers = np.random.default_rng(seed).integers(-3, 4, size=shape)
    return torch.as_tensor(numbers).to(dtype)


class Case:
    """A random call, which all processes make alike."""

    def __init__(self, seed, size, takes_strides):
        self.random = random.Random(seed)
        self.seed = seed
        self.size = size
        self.shape = [
            self.random.choice([1, 2, 3, 5, 33, 700]) for _ in range(self.random.choice([1, 2]))
        ]
        self.dtype = self.random.choice([*INTEGERS, *FLOATS])
        self.op = self.random.choice(OPERATORS)
        self.root = self.random.randrange(size)
        self.is_strided = self.random.random() < 0.3 and takes_strides

    def tensor(self, rank, rows=1):
        shape = [self.shape[0] * rows, *self.shape[1:]]
        tensor = draw([self.seed, rank], shape, self.dtype)
        return torch.stack([tensor, tensor + 1], -1)[..., 0] if self.is_strided else tensor

    def all_reduce(self, rank, group):
        tensor = self.tensor(rank)
        dist.all_reduce(tensor, self.op, group)
        return [tensor]

    def reduce(self, rank, group):
        tensor = self.tensor(rank)
        dist.reduce(tensor, self.root, self.op, group)
        return [tensor] if rank == self.root else []

    def broadcast(self, rank, group):
        tensor = self.tensor(rank)
        dist.broadcast(tensor, self.root, group)
        return [tensor]

    def all_gather(self, rank, group):
        tensors = [torch.empty_like(self.tensor(0)) for _ in range(self.size)]
        dist.all_gather(tensors, self.tensor(rank), group)
        return tensors

    def all_gather_into_tensor(self, rank, group):
        tensor = self.tensor(0, rows=self.size).contiguous()
        dist.all_gather_into_tensor(tensor, self.tensor(rank).contiguous(), group)
        return [tensor]

    def gather(self, rank, group):
        is_root = rank == self.root
        tensors = [torch.empty_like(self.tensor(0)) for _ in range(self.size)] if is_root else None
        dist.gather(self.tensor(rank), tensors, self.root, group)
        return tensors or []

    def scatter(self, rank, group):
        tensor = torch.empty_like(self.tensor(0))
        blocks = [self.tensor(each) for each in range(self.size)] if rank == self.root else None
        dist.scatter(tensor, blocks, self.root, group)
        return [tensor]

    def all_to_all_single(self, rank, group):
        if self.random.random() < 0.5:
            given = self.tensor(rank, rows=self.size).contiguous()
            tensor = torch.empty_like(given)
            dist.all_to_all_single(tensor, given, group=group)
            return [tensor]
        lengths = [[self.random.randrange(4) for _ in range(self.size)] for _ in range(self.size)]
        received = [each[rank] for each in lengths]
        given = draw([self.seed, rank], [sum(lengths[rank]), *self.shape[1:]], self.dtype)
        tensor = torch.empty([sum(received), *self.shape[1:]], dtype=self.dtype)
        dist.all_to_all_single(tensor, given, received, lengths[rank], group)
        return [tensor]

    CALLS = (
        all_reduce,
        reduce,
        broadcast,
        all_gather,
        all_gather_into_tensor,
        gather,
        scatter,
        all_to_all_single,
    )


@pytest.mark.parametrize("size", [2, 3, 4])
def test_results_are_those_of_gloo(run, size):
    def program(rank):
        gloo = dist.new_group(backend="gloo", timeout=LIMIT)
        for seed in range(60):
            number = seed % len(Case.CALLS)
            case = Case(seed, size, takes_strides=True)
            ours = Case.CALLS[number](case, rank, None)
            # Gloo scatters other elements of tensors with strides.
            theirs = Case.CALLS[number](Case(seed, size, takes_strides=False), rank, gloo)
            what = (Case.CALLS[number].__name__, seed, case.shape, case.dtype, case.op)
            assert len(ours) == len(theirs)
            for one, other in zip(ours, theirs, strict=True):
                assert torch.equal(one, other), (what, one, other)

    run(program, size)


def test_sums_of_narrow_floats_are_rounded_once(run):
    def program(rank):
        for dtype, small in [(torch.bfloat16, 2.0**-8), (torch.float16, 2.0**-11)]:
            # 1 + small is rounded to 1, but 1 + 2 small is not.
            tensor = torch.tensor([1.0 if rank == 0 else small] * 5, dtype=dtype)
            dist.all_reduce(tensor)
            assert tensor.tolist() == [1.0 + 2 * small] * 5
        tensor = torch.tensor([rank + 1.0], dtype=torch.bfloat16)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        assert tensor.tolist() == [2.0]

    run(program, 3)


def test_operators_and_types(run):
    op = dist.ReduceOp

    def program(rank):
        def reduced(values, op, dtype):
            tensor = torch.tensor(values, dtype=dtype)
            dist.all_reduce(tensor, op)
            return tensor.tolist()

        assert reduced([rank, 6], op.AVG, torch.float64) == [0.5, 6]
        assert reduced([6 + rank], op.BAND, torch.int16) == [6]
        assert reduced([6 + rank], op.BOR, torch.uint32) == [7]
        assert reduced([6 + rank], op.BXOR, torch.int64) == [1]
        assert reduced([True, rank == 0, False], op.SUM, torch.bool) == [True, True, False]
        assert reduced([True, rank == 0, False], op.MIN, torch.bool) == [True, False, False]
        assert reduced([1j + rank], op.SUM, torch.complex64) == [1 + 2j]
        for dtype in (torch.complex128, torch.float8_e5m2, torch.bool, torch.bfloat16):
            tensor = torch.ones(3).to(dtype) if rank == 1 else torch.zeros(3).to(dtype)
            dist.broadcast(tensor, 1)
            assert torch.equal(tensor.to(torch.complex128), torch.ones(3, dtype=torch.complex128))
        halves = torch.tensor([1 + 2j, rank], dtype=torch.complex32)
        dist.group.WORLD.allreduce([halves]).wait()
        assert halves.to(torch.complex64).tolist() == [2 + 4j, 1]
        scalar = torch.tensor(2.0, requires_grad=True)
        dist.all_reduce(scalar)
        assert scalar.item() == 4.0
        dist.all_reduce(torch.empty(0))
        for call, match in [
            (lambda: reduced([1], op.AVG, torch.int32), "no operator .*AVG on torch.int32"),
            (lambda: reduced([1], op.BAND, torch.float32), "no operator .*BAND on torch.float32"),
            (lambda: dist.all_reduce(torch.ones(1, device="meta")), "not on meta"),
            (lambda: dist.all_reduce(torch.ones(2).to_sparse()), "dense tensors"),
            (
                lambda: dist.all_reduce(torch.ones(1), dist._make_nccl_premul_sum(2.0)),
                "no operator .*PREMUL_SUM",
            ),
        ]:
            with pytest.raises((ValueError, NotImplementedError), match=match):
                call()

    run(program)


def test_call_of_the_group_combines_a_tensor_now(run):
    def program(rank):
        group = dist.group.WORLD
        for dtype in (torch.float32, torch.bfloat16, torch.int64, torch.complex64):
            tensor = torch.full((5,), rank + 1).to(dtype)
            group.all_reduce(tensor)
            assert tensor.tolist() == [3.0] * 5
        group.all_reduce(tensor.real, "product")
        assert tensor.tolist() == [9.0] * 5
        started = dist.all_reduce(torch.ones(100_000), async_op=True)
        group.all_reduce(tensor.real, "min")  # after the one that was started
        assert started.is_completed()
        for error, match, call in [
            (ValueError, "not on meta", lambda: group.all_reduce(torch.ones(1, device="meta"))),
            (ValueError, "unknown operator 'avg'", lambda: group.all_reduce(torch.ones(1), "avg")),
            (ValueError, "no operator product", lambda: group.all_reduce(tensor, "product")),
            (
                ValueError,
                "no operator sum",
                lambda: group.all_reduce(torch.ones(1).to(torch.float8_e5m2)),
            ),
            (consort.Mismatched, "all_reduce", lambda: group.all_reduce(torch.ones(1 + rank))),
        ]:
            with pytest.raises(error, match=match):
                call()

    run(program)


def test_reduce_scatter_and_lists(run):
    def program(rank):
        mine = torch.arange(6.0) * (rank + 1)
        block = torch.empty(3)
        dist.reduce_scatter_tensor(block, mine)
        assert torch.equal(block, torch.arange(6.0).reshape(2, 3)[rank] * 3)
        mine = torch.arange(200_000) * (rank + 1)
        block = mine[:100_000] if rank == 1 else mine[100_000:]  # that for the other process
        dist.reduce_scatter_tensor(block, mine)
        assert torch.equal(block, torch.arange(200_000).reshape(2, 100_000)[rank] * 3)
        block = torch.empty(3)
        dist.reduce_scatter(block, [torch.ones(3), torch.full((3,), 2.0)], dist.ReduceOp.MAX)
        assert block.tolist() == [rank + 1.0] * 3
        sent = [torch.full((2 * each + 1,), float(rank)) for each in (0, 1)]
        received = [torch.empty(2 * rank + 1) for _ in range(2)]
        dist.all_to_all(received, sent)
        assert [each.tolist() for each in received] == [
            [float(one)] * (2 * rank + 1) for one in (0, 1)
        ]
        whole = torch.full((4,), float(rank))
        dist.all_gather_into_tensor(whole, whole[2 * rank : 2 * rank + 2])  # in place
        assert whole.tolist() == [0.0, 0.0, 1.0, 1.0]
        objects = [None, None]
        dist.all_gather_object(objects, {"rank": rank})
        assert objects == [{"rank": 0}, {"rank": 1}]
        objects = [rank, "x" * 100_000 * rank]
        dist.broadcast_object_list(objects, src=1)
        assert objects == [1, "x" * 100_000]
        with pytest.raises(ValueError, match="number of elements"):
            dist.all_gather([torch.empty(2), torch.empty(3)], torch.empty(2))
        dist.barrier()

    run(program)


def test_works_are_complete_in_order_and_have_futures(run):
    def program(rank):
        tensors = [torch.full((1000,), float(rank + each)) for each in range(20)]
        works = [dist.all_reduce(each, async_op=True) for each in tensors]
        doubled = works[7].get_future().then(lambda future: future.value()[0] * 2)
        assert works[-1].wait() and all(each.is_completed() for each in works)
        assert [each[0].item() for each in tensors] == [1.0 + 2 * each for each in range(20)]
        assert doubled.wait()[0].item() == 30.0
        assert works[0].is_success() and works[0].result()[0] is tensors[0]
        refused = []

        def waits(future):
            try:
                dist.barrier()
            except RuntimeError as error:
                refused.append(str(error))

        dist.barrier(async_op=True).get_future().then(waits).wait()
        # It is refused only if the callback runs on the thread of the group.
        assert not refused or "cannot be waited for in a callback" in refused[0]

    run(program)


def test_messages_have_tags_and_any_length(run):
    def program(rank):
        other = 1 - rank
        for length in (0, 1, 1000, 100_000):
            tensor = torch.full((length, 2), rank, dtype=torch.int32)
            received = torch.empty(2, length, dtype=torch.int32).t()
            works = [dist.isend(tensor, other), dist.irecv(received, other)]
            for work in works:
                work.wait()
            assert (received == other).all()
        sends = [dist.isend(torch.tensor([tag]), other, tag=tag) for tag in range(200)]
        for tag in reversed(range(200)):
            received = torch.empty(1, dtype=torch.int64)
            dist.recv(received, other, tag=tag)
            assert received.item() == tag
        for work in sends:
            work.wait()
        # A call that has started does not hold up messages.
        reduced = torch.ones(1)
        if rank == 0:
            work = dist.all_reduce(reduced, async_op=True)
            dist.send(torch.ones(100_000), 1)
            work.wait()
        else:
            dist.recv(torch.empty(100_000), 0)
            dist.all_reduce(reduced)
        batch = [
            dist.P2POp(dist.isend, torch.ones(3) * rank, other),
            dist.P2POp(dist.irecv, reduced.expand(1).clone().resize_(3), other),
        ]
        for work in dist.batch_isend_irecv(batch):
            work.wait()
        assert batch[1].tensor.tolist() == [float(other)] * 3
        work = dist.isend(torch.ones(2), other)
        with pytest.raises(
            ValueError, match=r"8 bytes from process \d does not fit a tensor of 12"
        ):
            dist.recv(torch.empty(3), other)
        work.wait()

    run(program)


def test_message_of_any_process_is_received(run):
    def program(rank):
        if rank != 0:
            return dist.send(torch.tensor([rank]), 0)
        tensor = torch.empty(1, dtype=torch.int64)
        sources = [dist.recv(tensor) for _ in range(2)]
        assert sorted(sources) == [1, 2]

    run(program, 3)


def test_groups_of_some_processes(run):
    def program(rank):
        pairs = [dist.new_group([0, 2]), dist.new_group([1]), dist.new_group([1, 2])]
        sums = []
        for pair in pairs:
            tensor = torch.tensor([rank + 1])
            if dist.get_rank(pair) >= 0:
                dist.all_reduce(tensor, group=pair)
            sums.append(tensor.item())
        tensor = torch.tensor([rank])
        if rank != 1:
            dist.broadcast(tensor, src=2, group=pairs[0])
            dist.destroy_process_group(pairs[0])
        dist.all_reduce(tensor)
        return sums, tensor.item()

    assert run(program, 3) == [([4, 1, 1], 5), ([2, 2, 5], 5), ([4, 3, 5], 5)]


def test_training_step_of_a_model_is_that_of_gloo(run):
    def program(rank):
        def losses(group):
            torch.manual_seed(1)
            layers = torch.nn.Linear(7, 50), torch.nn.ReLU(), torch.nn.Linear(50, 1)
            model = DistributedDataParallel(
                torch.nn.Sequential(*layers), process_group=group, bucket_cap_mb=0.001
            )
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            random = torch.Generator().manual_seed(rank)
            for _ in range(4):
                optimizer.zero_grad()
                loss = model(torch.randn(16, 7, generator=random)).square().mean()
                loss.backward()
                optimizer.step()
                yield loss.item()

        return list(losses(None)), list(losses(dist.new_group(backend="gloo", timeout=LIMIT)))

    for ours, theirs in run(program):
        assert ours == pytest.approx(theirs, rel=1e-6)
        assert ours[0] > ours[-1]


def test_comparison_with_gloo_is_printed():
    command = [sys.executable, "-m", "consort.torch"]
    rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    assert rows[0].startswith("2 processes on") and rows[2].split() == [
        "call",
        "type",
        "size",
        "gloo",
        "consort",
        "gloo/consort",
    ]
    assert len(rows) == 14 and all(row.endswith("x") and len(row) <= 80 for row in rows[3:])
    wrong = subprocess.run([*command, "none"], capture_output=True, text=True)
    assert (wrong.returncode, wrong.stderr) == (1, "usage: python -m consort.torch [PROCESSES]\n")


def test_killed_process_is_an_error_on_all_others(run, tmp_path):
    def program(rank):
        dist.barrier()
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        began = time.monotonic()
        if rank == 0:
            call = lambda: dist.all_reduce(torch.ones(1))  # noqa: E731
        else:
            call = lambda: dist.recv(torch.empty(1), 1)  # noqa: E731
        try:
            call()
        except consort.PeFailed as error:
            (tmp_path / f"{rank}").write_text(f"{error.pe_rank} {time.monotonic() - began}")

    with pytest.raises(consort.PeFailed):
        run(program, 3)
    for rank in (0, 2):
        failed, seconds = (tmp_path / f"{rank}").read_text().split()
        assert failed == "1" and float(seconds) < 20


def test_killed_process_ends_the_training_of_the_others(run, tmp_path):
    def program(rank):
        model = DistributedDataParallel(torch.nn.Linear(5, 5))
        for step in range(100):
            if rank == 1 and step == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                model(torch.ones(1, 5)).sum().backward()
            except RuntimeError as error:
                (tmp_path / f"{rank}").write_text(f"{step} {error}")
                return

    with pytest.raises(consort.PeFailed):
        run(program, 3)
    for rank in (0, 2):
        text = (tmp_path / f"{rank}").read_text()
        assert text.startswith("3 ") and "PeFailed: PE 1 failed" in text


def test_call_that_takes_too_long_fails_the_group(run):
    def program(rank):
        if rank == 0:
            with pytest.raises(TimeoutError, match=r"all_reduce took longer than 0\.2 s"):
                dist.all_reduce(torch.ones(1), async_op=True).wait(timedelta(seconds=0.2))
        time.sleep(0.5)
        with pytest.raises(consort.PeFailed, match=r"PE 0 failed: all_reduce took longer than 0"):
            dist.barrier()

    run(program)


def test_different_calls_are_errors(run):
    def program(rank):
        with pytest.raises(consort.Mismatched):
            dist.all_reduce(torch.ones(2 + rank))

    run(program)


def test_program_of_the_documentation_runs_under_torchrun():
    text = (Path(__file__).parents[2] / "docs/python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (block,) = (block for block in blocks if "import consort.torch" in block)

    def program(team, port):
        place = {
            "RANK": team.rank,
            "WORLD_SIZE": 2,
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": port,
        }
        os.environ.update({name: str(value) for name, value in place.items()})
        known = {}
        exec(compile(block, "docs/python.md", "exec"), known)
        return known["loss"].item()

    store = dist.TCPStore("localhost", 0, is_master=True, wait_for_workers=False)
    port = store.port
    del store
    one, other = consort.launch(program, 2, (port,), processes=True)
    assert one == other


def test_lists_of_chunks_are_used_in_place(run):
    def program(rank):
        whole = torch.empty(3, 100)
        chunks = list(whole.unbind())
        dist.all_gather(chunks, torch.full((100,), rank + 1.0))
        assert whole.sum(1).tolist() == [100.0, 200.0, 300.0]
        dist.all_gather(chunks, chunks[rank])  # in place
        assert whole.sum(1).tolist() == [100.0, 200.0, 300.0]
        block = torch.empty(100)
        dist.reduce_scatter(block, chunks)
        assert block.tolist() == [3.0 * (rank + 1)] * 100
        dist.scatter(chunks[1] if rank == 1 else block, chunks if rank == 1 else None, src=1)
        assert (chunks[1] if rank == 1 else block).tolist() == [rank + 1.0] * 100
        dist.gather(block, chunks if rank == 0 else None, dst=0)
        assert rank != 0 or whole.mean(1).tolist() == [1.0, 6.0, 3.0]
        # In other orders, and with strides.
        for outputs in (chunks[::-1], list(torch.empty(100, 3).unbind(1))):
            dist.all_gather(outputs, torch.full((100,), float(rank)))
            assert [each.mean().item() for each in outputs] == [0.0, 1.0, 2.0]

    run(program, 3)


def test_stub_has_the_interface_of_torch():
    place = Path(__file__).parent / "stub/torch"
    spec = importlib.util.spec_from_file_location(
        "torch_stub", place / "__init__.py", submodule_search_locations=[str(place)]
    )
    stub = importlib.util.module_from_spec(spec)
    sys.modules["torch_stub"] = stub
    spec.loader.exec_module(stub)
    pairs = [(stub, torch), (stub.distributed, dist), (stub.futures, torch.futures)]
    for known, real in pairs:
        for name, value in vars(known).items():
            is_own = getattr(value, "__module__", "").startswith("torch_stub")
            if name.startswith("_") or not (is_own or name in ("strided", "sparse_coo")):
                continue
            assert hasattr(real, name), name
            if isinstance(value, type):
                parts = {part for part in vars(value) if not part.startswith("__")}
                # Only the stub has these, and torch calls the last one without declaring it.
                parts -= {"elements", "registered", "_like", "_path", "getBackendName"}
                missing = [part for part in parts if not hasattr(getattr(real, name), part)]
                assert not missing, (name, missing)


def test_missing_process_is_named(tmp_path):
    store = dist.FileStore(str(tmp_path / "store"), 2)
    limit = timedelta(seconds=0.2)
    with pytest.raises(consort.Error, match=r"TimeoutError: processes \[1\] did not join"):
        consort.torch.ProcessGroup(store, 0, 2, limit)
