"""Reads the output of the command `consort` as pandas data frames."""

from __future__ import annotations

import json
import os
import stat
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._consort import VERSION

if TYPE_CHECKING:
    import pandas

#: The format of wisdom that this package reads.
_FORMAT = 3

#: The maximum size of a file, in bytes.
_MOST_BYTES = 64 << 20

#: The kinds of objects: the keys that identify one, and the key of the list with its rows.
_KINDS: tuple[tuple[str, tuple[str, ...], str | None], ...] = (
    ("bench", ("bench", "algorithm"), None),
    ("reproduce", ("claim", "quantity"), None),
    ("applications", ("application", "side"), None),
    ("tune", ("wisdom", "entries"), "entries"),
    ("wisdom", ("path", "entries"), "entries"),
    ("check", ("penalties", "within_10_percent"), "penalties"),
    ("predict", ("calls", "median_error"), "calls"),
    ("model", ("collective", "algorithm", "latency_ns"), None),
)


class ResultsError(ValueError):
    """A file cannot be read: the message says why, and at which line."""


def _pandas() -> Any:
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            "data frames need pandas, which is not installed: pip install 'consort[frames]'"
        ) from error
    return pandas


def read_results(path: str | os.PathLike[str]) -> pandas.DataFrame:
    """Reads the results that a command has written with `--json`, a row for each figure.

    The command may be `bench`, `sim`, `tune`, `sync advise`, `reproduce`, `predict`, `model`,
    `wisdom show` or lab/apps/compare; `frame.attrs["kind"]` is the kind of the rows. A nested
    object becomes several columns, such as `context.machine` and `params.chunk_bytes`. An interval
    becomes two, such as `ci95_ns.low` and `ci95_ns.high`. `candidate` is the algorithm with its
    parameters, or the name of a peer, or both.

    Raises:
        ResultsError: if the file is not a regular file or is longer than 64 MiB, or if a line is
            truncated, is not a result of Consort, or is from another version.
        ImportError: without pandas.
    """
    module = _pandas()
    kinds: set[str] = set()
    rows: list[dict[str, Any]] = []
    lines = _text(Path(path)).splitlines()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        place = f"{os.fspath(path)}:{number}"
        found = _object(line, place, number == len(lines))
        kind, inner = _kind(found, place)
        _check_version(found, place)
        kinds.add(kind)
        if inner is None:
            rows.append(_row(found))
        else:
            shared = {key: value for key, value in found.items() if key != inner}
            rows.extend(_row({**shared, **one}) for one in found[inner])
    if not kinds:
        raise ResultsError(f"{os.fspath(path)}: the file has no figures")
    if len(kinds) > 1:
        names = " and ".join(sorted(kinds))
        raise ResultsError(f"{os.fspath(path)}: figures of {names} in one file: use one file each")
    frame: pandas.DataFrame = module.json_normalize(rows)
    frame.attrs.update(kind=kinds.pop(), path=os.fspath(path))
    return frame


def read_wisdom(path: str | os.PathLike[str] | None = None) -> pandas.DataFrame:
    """Reads wisdom, a row for each entry; `frame.attrs` has its head: machine, library, and so on.

    Without a path, reads the file that `CONSORT_WISDOM` names, or else the user's.

    Raises:
        ResultsError: if the file is not a regular file, is not wisdom, is truncated, or has another
            format.
        FileNotFoundError: if the file does not exist.
        ImportError: without pandas.
    """
    module = _pandas()
    place = Path(path) if path is not None else _wisdom()
    text = _text(place)
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ResultsError(f"{place}: not a wisdom file, or truncated: {error}") from error
    head = found.get("wisdom")
    if not isinstance(head, dict) or "format" not in head:
        raise ResultsError(f"{place}: not a wisdom file: expected a table [wisdom] with a format")
    if head["format"] != _FORMAT:
        raise ResultsError(
            f"{place}: is in format {head['format']}, but this package reads {_FORMAT}: use the "
            f"package of Consort {head.get('library', 'that wrote it')}"
        )
    entries = found.get("entry", [])
    stated = head.get("entries", len(entries))
    if stated != len(entries):
        raise ResultsError(f"{place}: truncated: expected {stated} entries, found {len(entries)}")
    frame: pandas.DataFrame = module.json_normalize([_row(entry) for entry in entries])
    frame.attrs.update(head, kind="wisdom", path=str(place))
    return frame


def _text(path: Path) -> str:
    """Reads a regular file, without waiting for the writer of a pipe."""
    with open(path, "rb", opener=_open) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not stat.S_ISREG(mode):
            kind = "a named pipe" if stat.S_ISFIFO(mode) else "a device"
            raise ResultsError(f"{path}: is {kind}: name a regular file")
        found = file.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        limit = f"{_MOST_BYTES >> 20} MiB"
        raise ResultsError(f"{path}: has more than {limit}, the limit for such a file")
    try:
        return found.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResultsError(f"{path}: invalid UTF-8 at byte {error.start}") from error


def _open(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0))


def _wisdom() -> Path:
    named = os.environ.get("CONSORT_WISDOM")
    if named and named.strip():
        return Path(named)
    configured = os.environ.get("XDG_CONFIG_HOME")
    folder = Path(configured) if configured else Path.home() / ".config"
    return folder / "consort" / "wisdom.toml"


def _object(line: str, place: str, is_last: bool) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        cut = (is_last and error.pos >= len(line.rstrip()) - 1) or "Unterminated" in error.msg
        what = "truncated line" if cut else "invalid JSON"
        raise ResultsError(f"{place}: {what}: {error.msg} at column {error.colno}") from error
    if not isinstance(found, dict):
        raise ResultsError(f"{place}: expected a JSON object, not {type(found).__name__}")
    return found


def _kind(found: dict[str, Any], place: str) -> tuple[str, str | None]:
    for kind, keys, inner in _KINDS:
        if all(key in found for key in keys):
            if inner is not None and not isinstance(found[inner], list):
                raise ResultsError(f"{place}: `{inner}` must be a list")
            return kind, inner
    shown = ", ".join(list(found)[:5]) or "none"
    raise ResultsError(f"{place}: unknown kind of figure, with these keys: {shown}")


def _check_version(found: dict[str, Any], place: str) -> None:
    context = found.get("context")
    written = context.get("version") if isinstance(context, dict) else None
    if written is not None and _series(written) != _series(VERSION):
        raise ResultsError(
            f"{place}: Consort {written} wrote this, but this package is version {VERSION}: use "
            f"the package of Consort {written}"
        )


def _series(text: str) -> list[str]:
    """Returns the part of a version that is equal if two versions read each other's files."""
    numbers = text.split(".")
    return numbers[:2] if numbers[0] == "0" else numbers[:1]


def _row(found: dict[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for key, value in found.items():
        if key.startswith("ci95_"):
            low, high = value if isinstance(value, list) and len(value) == 2 else (None, None)
            row[f"{key}.low"], row[f"{key}.high"] = low, high
        elif key != "params" or value:
            row[key] = value
    if "choice" in found:
        row["candidate"] = found["choice"]
    elif "algorithm" in found:
        names = _candidate(found["algorithm"], found.get("params")), found.get("peer")
        row["candidate"] = ", ".join(name for name in names if name) or None
    return row


def _candidate(algorithm: str | None, params: dict[str, Any] | None) -> str | None:
    if not algorithm or not params:
        return algorithm
    values = ",".join(f"{name}={value}" for name, value in params.items())
    return f"{algorithm}({values})"
