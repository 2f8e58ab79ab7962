"""Times all-reduces and barriers of `torch.distributed`: those of gloo and of Consort, in turn."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import get_context
from typing import Any

import torch as _torch
import torch.distributed as _dist

# Types are checked against a part of torch's interface, which lacks most of what this uses.
torch: Any = _torch
dist: Any = _dist

_BACKENDS = ("gloo", "consort")
_SIZES = (8, 8 << 10, 64 << 10, 1 << 20, 16 << 20)
_TYPES = ("float32", "bfloat16")

#: Blocks of each backend, and how long one takes at most, in seconds.
_BLOCKS = 5
_BLOCK_SECONDS = 0.1


def main() -> None:
    """Prints the table, for as many processes as the first argument says, or two."""
    arguments = sys.argv[1:] or ["2"]
    if len(arguments) > 1 or not arguments[0].isdecimal() or int(arguments[0]) < 1:
        sys.exit("usage: python -m consort.torch [PROCESSES]")
    processes = int(arguments[0])
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    cores = len(os.sched_getaffinity(0))
    print(f"{processes} processes on {cores} cores: medians of {_BLOCKS} blocks, in us\n")
    print(f"{'call':<11}{'type':<10}{'size':>8}{'gloo':>11}{'consort':>11}{'gloo/consort':>14}")
    if processes > cores:
        print("There are more processes than cores, so calls wait for time slices.")
    with tempfile.TemporaryDirectory() as folder:
        context = get_context("spawn")
        ranks = [
            context.Process(target=_run, args=(rank, processes, f"{folder}/store"))
            for rank in range(processes)
        ]
        for each in ranks:
            each.start()
        for each in ranks:
            each.join()
    sys.exit(max(abs(each.exitcode or 0) for each in ranks))


def _run(rank: int, size: int, store: str) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    groups = [dist.new_group(backend=backend) for backend in _BACKENDS]
    for name in _TYPES:
        for length in _SIZES:
            dtype = getattr(torch, name)
            tensor = torch.zeros(length // dtype.itemsize, dtype=dtype)
            calls = [partial(dist.all_reduce, tensor, group=group) for group in groups]
            _show(rank, f"{'all_reduce':<11}{name:<10}{_size(length):>8}", calls, groups[0])
    barriers = [partial(dist.barrier, group=group) for group in groups]
    _show(rank, f"{'barrier':<11}{'':<10}{'':>8}", barriers, groups[0])
    dist.destroy_process_group()


def _show(rank: int, row: str, calls: Sequence[Callable[[], Any]], group: Any) -> None:
    """Times calls in turn, and prints a row."""
    medians: list[list[float]] = [[] for _ in calls]
    counts = []
    for call in calls:
        call()
        # All processes take the count of the slowest.
        one = torch.tensor([_time(call)], dtype=torch.float64)
        dist.all_reduce(one, dist.ReduceOp.MAX, group=group)
        counts.append(max(3, min(500, int(_BLOCK_SECONDS / one.item()))))
    for _ in range(_BLOCKS):
        for call, count, times in zip(calls, counts, medians, strict=True):
            times.append(statistics.median(_time(call) for _ in range(count)))
    if rank == 0:
        theirs, ours = (statistics.median(times) * 1e6 for times in medians)
        print(f"{row}{theirs:>11.1f}{ours:>11.1f}{theirs / ours:>13.1f}x", flush=True)


def _time(call: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def _size(length: int) -> str:
    for unit, power in (("MiB", 20), ("KiB", 10)):
        if length >= 1 << power:
            return f"{length >> power} {unit}"
    return f"{length} B"
