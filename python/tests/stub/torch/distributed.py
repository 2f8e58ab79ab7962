"""Process groups, and the options of their calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from . import Tensor, device
    from .futures import Future


class ReduceOp:
    """An operator."""

    SUM = "SUM"
    AVG = "AVG"
    PRODUCT = "PRODUCT"
    MIN = "MIN"
    MAX = "MAX"
    BAND = "BAND"
    BOR = "BOR"
    BXOR = "BXOR"
    PREMUL_SUM = "PREMUL_SUM"


class AllreduceOptions:
    reduceOp: Any = ReduceOp.SUM
    asyncOp: bool = True


class ReduceScatterOptions:
    reduceOp: Any = ReduceOp.SUM


class ReduceOptions:
    reduceOp: Any = ReduceOp.SUM
    rootRank = 0


class BroadcastOptions:
    rootRank = 0


class BarrierOptions:
    asyncOp: bool = True


class GatherOptions:
    rootRank = 0


class ScatterOptions:
    rootRank = 0


class Store:
    """Values that all processes read, by their names."""

    def set(self, key: str, value: str) -> None:
        raise NotImplementedError

    def get(self, key: str) -> bytes:
        raise NotImplementedError

    def check(self, keys: list[str]) -> bool:
        raise NotImplementedError

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        raise NotImplementedError


class FileStore(Store):
    """Values in the files of a folder, which torch's own has in one file."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        self._folder = Path(file_name)
        self._folder.mkdir(exist_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / key.replace("/", "-")

    def set(self, key: str, value: str) -> None:
        path = self._path(key)
        made = path.with_suffix(".new")
        made.write_text(value)
        made.rename(path)

    def get(self, key: str) -> bytes:
        return self._path(key).read_bytes()

    def check(self, keys: list[str]) -> bool:
        return all(self._path(key).exists() for key in keys)

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        until = time.monotonic() + timeout.total_seconds()
        while not self.check(keys):
            if time.monotonic() > until:
                raise RuntimeError("wait timeout")
            time.sleep(0.001)


class Work:
    """The handle of a call."""

    def wait(self, timeout: timedelta = timedelta(0)) -> bool:
        raise NotImplementedError

    def synchronize(self) -> None:
        raise NotImplementedError

    def is_completed(self) -> bool:
        raise NotImplementedError

    def is_success(self) -> bool:
        raise NotImplementedError

    def exception(self) -> BaseException | None:
        raise NotImplementedError

    def _source_rank(self) -> int:
        raise NotImplementedError

    def result(self) -> Any:
        raise NotImplementedError

    def get_future(self) -> Future[Any]:
        raise NotImplementedError


class ProcessGroup:
    """A group of processes, whose calls return handles."""

    def __init__(self, rank: int, size: int) -> None:
        pass

    def getBackendName(self) -> str:
        raise NotImplementedError

    def _set_group_name(self, name: str) -> None:
        raise NotImplementedError

    def rank(self) -> int:
        raise NotImplementedError

    def size(self) -> int:
        raise NotImplementedError

    def _get_backend(self, device: device) -> ProcessGroup:
        raise NotImplementedError

    def set_timeout(self, timeout: timedelta) -> None:
        raise NotImplementedError

    def shutdown(self) -> None:
        raise NotImplementedError

    def abort(self) -> None:
        raise NotImplementedError

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> Work:
        raise NotImplementedError

    def allreduce_coalesced(self, tensors: list[Tensor], opts: Any = None) -> Work:
        raise NotImplementedError

    def reduce(self, tensors: list[Tensor], opts: Any) -> Work:
        raise NotImplementedError

    def broadcast(self, tensors: list[Tensor], opts: Any) -> Work:
        raise NotImplementedError

    def allgather(
        self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None
    ) -> Work:
        raise NotImplementedError

    def allgather_coalesced(
        self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None
    ) -> Work:
        raise NotImplementedError

    def _allgather_base(self, output: Tensor, given: Tensor, opts: Any = None) -> Work:
        raise NotImplementedError

    def allgather_into_tensor_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> Work:
        raise NotImplementedError

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any) -> Work:
        raise NotImplementedError

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> Work:
        raise NotImplementedError

    def reduce_scatter(
        self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None
    ) -> Work:
        raise NotImplementedError

    def _reduce_scatter_base(self, output: Tensor, given: Tensor, opts: Any = None) -> Work:
        raise NotImplementedError

    def reduce_scatter_tensor_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> Work:
        raise NotImplementedError

    def alltoall_base(
        self,
        output: Tensor,
        given: Tensor,
        output_lengths: list[int],
        lengths: list[int],
        opts: Any = None,
    ) -> Work:
        raise NotImplementedError

    def alltoall(self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None) -> Work:
        raise NotImplementedError

    def barrier(self, opts: Any = None) -> Work:
        raise NotImplementedError

    def send(self, tensors: list[Tensor], to: int, tag: int = 0) -> Work:
        raise NotImplementedError

    def recv(self, tensors: list[Tensor], origin: int, tag: int = 0) -> Work:
        raise NotImplementedError

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> Work:
        raise NotImplementedError


class Backend:
    """The backends, by their names."""

    registered: ClassVar[dict[str, tuple[Callable[..., ProcessGroup], Sequence[str]]]] = {}

    @classmethod
    def register_backend(
        cls, name: str, func: Callable[..., ProcessGroup], *, devices: Sequence[str]
    ) -> None:
        cls.registered[name] = func, devices
