"""Messages with tags between the processes of a group.

A message consists of a header, with its tag and its length, and then its bytes. A process counts
its messages to each other one in the memory of that one, and the messages that it has received in
the memory of their sender. So it starts to receive a message only when there is one, and it never
sends so far ahead that a send would wait.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import _consort
from .._pe_thread import PeThread
from ._tensors import Target
from ._work import Started

#: The number of messages to a process that it may not have received. Up to 24, each of two parts,
#: can be sent without waiting.
_AHEAD = 16


@dataclass
class Receive:
    """A receive that waits for a message, of a source or of any."""

    source: int | None
    tag: int
    tensor: Any
    work: Started


@dataclass
class _Peer:
    """The messages to and from another process."""

    #: The sends that have not begun.
    sends: deque[tuple[int, np.ndarray, Started]] = field(default_factory=deque)
    sent: int = 0
    received: int = 0
    #: The header that is received, or the tag and the bytes.
    header: _consort.Request | None = None
    content: tuple[int, _consort.Request | None] | None = None
    #: Messages that came before their receives, by tag.
    early: dict[int, deque[np.ndarray]] = field(default_factory=dict)


class Messages:
    """The messages of a process. Its methods run on the thread of the PE."""

    def __init__(self, thread: PeThread) -> None:
        self._thread = thread
        self._native = thread.native
        self._rank, self._size = self._native.rank, self._native.size
        self._peers = [_Peer() for _ in range(self._size)]
        self._receives: list[Receive] = []
        self._under_way: list[tuple[list[_consort.Request], Started]] = []
        self._is_polled = False
        # For each process the number of messages from it, and that of those that it has received.
        self._counts = np.zeros(2 * self._size, np.int64)
        self._memory = self._native.symmetric(self._counts[:0], 2 * self._size)

    def send(self, data: np.ndarray, to: int, tag: int, work: Started) -> None:
        """Sends bytes to a process."""
        self._peers[to].sends.append((tag, data, work))
        self._poll()

    def receive(self, receive: Receive) -> None:
        """Receives the next message with a tag."""
        sources = range(self._size) if receive.source is None else [receive.source]
        for source in sources:
            early = self._peers[source].early.get(receive.tag)
            if early:
                deliver(receive, source, early.popleft())
                return
        self._receives.append(receive)
        self._poll()

    def _poll(self) -> None:
        if not self._is_polled:
            self._is_polled = True
            self._thread.poll(self._is_idle)

    def _is_idle(self) -> bool:
        """Continues all messages. Returns whether there are none left."""
        try:
            self._native.progress()
            self._memory.get(self._rank, 0, self._counts)
            for to in range(self._size):
                self._continue_sends(to)
            self._under_way = [one for one in self._under_way if not _is_complete(*one)]
            for source in range(self._size):
                while self._continue_receives(source):
                    pass
        except Exception as error:
            self._fail(error)
        is_idle = not self._receives and not self._under_way
        self._is_polled = not (is_idle and not any(peer.sends for peer in self._peers))
        return not self._is_polled

    def _continue_sends(self, to: int) -> None:
        peer = self._peers[to]
        while peer.sends and peer.sent - self._counts[self._size + to] < _AHEAD:
            tag, data, work = peer.sends.popleft()
            header = np.array([tag, data.size], np.int64)
            parts = [self._native.start_send(header, to)]
            if data.size > 0:
                parts.append(self._native.start_send(data, to))
            peer.sent += 1
            self._memory.put(to, self._rank, np.array([peer.sent]))
            self._under_way.append((parts, work))

    def _continue_receives(self, source: int) -> bool:
        """Continues the first message from a process. Returns whether it has been received."""
        peer = self._peers[source]
        if peer.header is None and peer.content is None:
            is_there = self._counts[source] > peer.received
            is_wanted = any(one.source in (None, source) for one in self._receives)
            if not (is_there and is_wanted):
                return False
            peer.header = self._native.start_receive(source, self._counts[:0], 2)
        if peer.header is not None:
            if not peer.header.test():
                return False
            tag, size = _result(peer.header).tolist()
            like = np.empty(0, np.uint8)
            content = self._native.start_receive(source, like, size) if size > 0 else None
            peer.header, peer.content = None, (tag, content)
        assert peer.content is not None
        tag, content = peer.content
        if content is not None and not content.test():
            return False
        data = np.empty(0, np.uint8) if content is None else _result(content)
        peer.content = None
        peer.received += 1
        self._memory.put(source, self._size + self._rank, np.array([peer.received]))
        wanted = [one for one in self._receives if one.source in (None, source) and one.tag == tag]
        if wanted:
            self._receives.remove(wanted[0])
            deliver(wanted[0], source, data)
        else:
            peer.early.setdefault(tag, deque()).append(data)
        return True

    def _fail(self, error: Exception) -> None:
        works = [one.work for one in self._receives] + [work for _, work in self._under_way]
        for peer in self._peers:
            works += [work for _, _, work in peer.sends]
            peer.sends.clear()
        self._receives, self._under_way = [], []
        for work in works:
            work.fail(error)


def deliver(receive: Receive, source: int, data: np.ndarray) -> None:
    """Copies a message to the tensor of its receive."""
    target = Target(receive.tensor)
    into = target.array().view(np.uint8)
    if into.size != data.size:
        reason = f"a message of {data.size} bytes from process {source} does not fit a tensor of "
        receive.work.fail(ValueError(f"{reason}{into.size} bytes"))
        return
    into[:] = data
    target.finish(1)
    receive.work.source = source
    receive.work.complete()


def _is_complete(parts: list[_consort.Request], work: Started) -> bool:
    if not all(part.test() for part in parts):
        return False
    for part in parts:
        part.wait()
    work.complete()
    return True


def _result(request: _consort.Request) -> np.ndarray:
    elements = request.wait()
    assert elements is not None
    return elements
