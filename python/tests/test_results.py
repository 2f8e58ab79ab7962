"""Reads and plots the results of the command."""

import json
import os
import sys
from pathlib import Path

import matplotlib
import pytest

import consort

matplotlib.use("Agg")

pandas = pytest.importorskip("pandas")

CONTEXT = {"machine": "a machine", "version": "0.1.0", "load": 0.5}
BENCH = {
    "bench": "broadcast",
    "fabric": "threads",
    "pes": 2,
    "algorithm": "chain",
    "params": {"chunk_bytes": 1024},
    "sync": "mine",
    "bytes": 8,
    "median_ns": 50.0,
    "ci95_ns": [40.0, 60.0],
    "peer": None,
    "context": CONTEXT,
}
CLAIM = {"claim": "H6", "quantity": "reduce", "unit": "us", "native": 2.5, "context": CONTEXT}
ENTRY = {"collective": "reduce", "pes": 2, "bytes": 8, "choice": "flat", "median_ns": 40.0}
TUNE = {"wisdom": "w.toml", "machine": "a machine", "entries": [ENTRY, {**ENTRY, "bytes": 64}]}
PREDICT = {
    "machine": "host",
    "median_error": 0.1,
    "calls": [{"collective": "barrier", "bytes": 0, "predicted_ns": 1.0, "measured_ns": 2.0}],
    "context": CONTEXT,
}
MODEL = {
    "machine": "cluster",
    "collective": "reduce",
    "bytes": 8,
    "algorithm": "flat",
    "latency_ns": 7.0,
}
WISDOM = """\
[wisdom]
format = 3
library = "0.1.0"
machine = "a machine"
entries = 2

[[entry]]
collective = "reduce"
pes = 2
bytes = 8
choice = "flat"
median_ns = 40.0
ci95_ns = [39.0, 41.0]

[[entry]]
collective = "reduce"
pes = 2
bytes = 1024
choice = "chain(chunk_bytes=1024)"
median_ns = 400.0
"""


@pytest.fixture
def written(tmp_path):
    def write(*objects, end="\n"):
        path = tmp_path / "figures.json"
        lines = [one if isinstance(one, str) else json.dumps(one) for one in objects]
        path.write_text("\n".join(lines) + end)
        return path

    return write


def test_figures_are_rows(written):
    frame = consort.read_results(written(BENCH, {**BENCH, "ci95_ns": None, "params": {}}, ""))
    assert frame.attrs["kind"] == "bench" and len(frame) == 2
    assert frame["candidate"].tolist() == ["chain(chunk_bytes=1024)", "chain"]
    assert frame["ci95_ns.high"][0] == 60 and pandas.isna(frame["ci95_ns.low"][1])
    assert frame["context.machine"].unique().tolist() == ["a machine"]
    assert frame["params.chunk_bytes"][0] == 1024


@pytest.mark.parametrize(
    ("found", "kind", "rows", "column"),
    [
        (CLAIM, "reproduce", 1, "native"),
        (TUNE, "tune", 2, "candidate"),
        ({"path": "w.toml", "entries": [ENTRY]}, "wisdom", 1, "candidate"),
        (PREDICT, "predict", 1, "predicted_ns"),
        (MODEL, "model", 1, "latency_ns"),
        ({"penalties": [ENTRY], "within_10_percent": 1.0}, "check", 1, "bytes"),
        ({"application": "ft", "side": "overlap", "pes": 2}, "applications", 1, "side"),
    ],
)
def test_each_kind_is_known(written, found, kind, rows, column):
    frame = consort.read_results(written(found))
    assert (frame.attrs["kind"], len(frame)) == (kind, rows)
    assert frame[column].notna().all()


def refused(path, match):
    with pytest.raises(consort.ResultsError, match=match):
        consort.read_results(path)


def test_truncated_files_are_refused(written):
    whole = json.dumps(BENCH)
    for length in (1, 10, len(whole) // 2, len(whole) - 1):
        refused(
            written(BENCH, whole[:length], end=""),
            r"figures.json:2: truncated line: .* column",
        )
    refused(written("", end=""), "the file has no figures")


def test_other_files_are_refused(written):
    refused(
        written(BENCH, "banana", BENCH),
        r"figures.json:2: invalid JSON: Expecting value at column 1",
    )
    refused(written("[1]"), "figures.json:1: expected a JSON object, not list")
    refused(written({"a": 1, "b": 2}), "unknown kind of figure, with these keys: a, b")
    refused(written({}), "with these keys: none")
    refused(written({**TUNE, "entries": 3}), "`entries` must be a list")
    refused(written(BENCH, CLAIM), "figures of bench and reproduce in one file")
    newer = {**BENCH, "context": {"version": "0.9.1"}}
    refused(
        written(BENCH, newer),
        "figures.json:2: Consort 0.9.1 wrote this, but this package is version 0.1.0",
    )
    assert len(consort.read_results(written({**BENCH, "context": {"version": "0.1.7"}}))) == 1
    with pytest.raises(FileNotFoundError):
        consort.read_results("/nowhere/figures.json")


def test_wisdom_is_read(tmp_path, monkeypatch):
    path = tmp_path / "wisdom.toml"
    path.write_text(WISDOM)
    frame = consort.read_wisdom(path)
    assert frame["candidate"].tolist() == ["flat", "chain(chunk_bytes=1024)"]
    assert (frame.attrs["machine"], frame.attrs["kind"]) == ("a machine", "wisdom")
    monkeypatch.setenv("CONSORT_WISDOM", str(path))
    assert len(consort.read_wisdom()) == 2
    monkeypatch.delenv("CONSORT_WISDOM")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"consort/wisdom\.toml"):
        consort.read_wisdom()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (WISDOM[: WISDOM.rindex("[[entry]]")], "truncated: expected 2 entries, found 1"),
        (WISDOM[:-5], "truncated|not a wisdom file"),
        (WISDOM[: len(WISDOM) // 2 + 4], "not a wisdom file, or truncated: "),
        (WISDOM.replace("format = 3", "format = 4"), "is in format 4, but this package reads 3"),
        ("[something]\nelse = 1\n", "expected a table .wisdom. with a format"),
    ],
)
def test_invalid_wisdom_is_refused(tmp_path, text, match):
    path = tmp_path / "wisdom.toml"
    path.write_text(text)
    if text == WISDOM[:-5]:
        assert len(consort.read_wisdom(path)) == 2, "a truncated number is still a number"
        return
    with pytest.raises(consort.ResultsError, match=match):
        consort.read_wisdom(path)


def test_figures_are_drawn(written):
    objects = [
        {**BENCH, "bytes": size, "algorithm": algorithm, "params": {}, "pes": pes}
        for size in (64, 8)
        for algorithm in ("flat", "ring")
        for pes in (2, 4)
    ]
    barrier = {**BENCH, "bytes": None, "algorithm": "central"}
    peer = {**BENCH, "algorithm": None, "params": None, "peer": "Open MPI", "sync": None}
    axes = consort.plot(consort.read_results(written(*objects, barrier, peer)))
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    ours = ["flat, 2 PEs", "flat, 4 PEs", "ring, 2 PEs", "ring, 4 PEs"]
    assert labels == ["Open MPI, 2 PEs", *ours]
    assert len(axes.lines) == len(axes.collections) == 5, "a line and a band each"
    assert axes.lines[1].get_xdata().tolist() == [8, 64]


def test_wisdom_and_models_are_drawn_too(written, tmp_path):
    path = tmp_path / "wisdom.toml"
    path.write_text(WISDOM)
    _, ax = matplotlib.pyplot.subplots()
    assert consort.plot(consort.read_wisdom(path), ax) is ax
    assert len(ax.lines) == 1
    assert len(consort.plot(consort.read_results(written(MODEL))).lines) == 1


def test_choices_of_a_call_are_one_line(tmp_path):
    """And a plot of all wisdom shows as many calls as one can tell apart."""
    entries = [
        f'[[entry]]\ncollective = "{collective}"\npes = {pes}\nbytes = {size}\n'
        f'choice = "{"flat" if size < 64 else "ring"}"\nmedian_ns = {size}.0\n'
        for collective in ("reduce", "broadcast", "all_reduce")
        for size in (8, 512)
        for pes in (2, 3, 4, 5, 6, 7)
    ]
    head = WISDOM[: WISDOM.index("[[entry]]")].replace("entries = 2", f"entries = {len(entries)}")
    path = tmp_path / "wisdom.toml"
    path.write_text(head + "".join(entries))
    frame = consort.read_wisdom(path)
    axes = consort.plot(frame)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert (labels, axes.get_title()) == (["all_reduce", "broadcast", "reduce"], "2 PEs")
    axes = consort.plot(frame[frame["collective"] == "reduce"])
    assert [line.get_xdata()[[0, -1]].tolist() for line in axes.lines] == [[8, 512]] * 6


def test_other_results_are_not_drawn(written):
    with pytest.raises(ValueError, match="figures of reproduce: no times of algorithms"):
        consort.plot(consort.read_results(written(CLAIM)))
    with pytest.raises(ValueError, match="no row has bytes"):
        consort.plot(consort.read_results(written({**BENCH, "bytes": None})))


def test_missing_packages_are_named(written, monkeypatch):
    frame = consort.read_results(written(BENCH))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'consort\[plots\]'"):
        consort.plot(frame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'consort\[frames\]'"):
        consort.read_results(written(BENCH))
    with pytest.raises(ImportError, match="pandas"):
        consort.read_wisdom("w.toml")


def test_stored_results_are_read():
    """Reads the stored results of several machines."""
    folder = Path(__file__).parents[2] / "lab/results"
    paths = sorted(path for path in folder.rglob("*.json") if path.name != "topo.json")
    kinds = {consort.read_results(path).attrs["kind"] for path in paths}
    assert kinds == {"bench", "predict", "check", "applications"}
    refused(next(folder.rglob("topo.json")), "unknown kind of figure")


@pytest.mark.parametrize("read", [consort.read_results, consort.read_wisdom])
def test_only_regular_files_of_bounded_length_are_read(tmp_path, read):
    pipe, long = tmp_path / "pipe", tmp_path / "long"
    os.mkfifo(pipe)
    with open(long, "wb") as file:
        file.truncate((64 << 20) + 1)
    for path, match in [
        (pipe, "is a named pipe: name a regular file"),
        ("/dev/zero", "is a device: name a regular file"),
        (long, "has more than 64 MiB, the limit"),
    ]:
        with pytest.raises(consort.ResultsError, match=match):
            read(path)
    with pytest.raises(IsADirectoryError):
        read(tmp_path)
