"""Plots data frames with matplotlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

#: The columns with times. `plot` draws the first one that the frame has.
_TIMES = ("median_ns", "latency_ns", "measured_ns")
#: The columns that distinguish lines, in addition to the algorithm.
_APART = ("bench", "collective", "fabric", "pes", "mode", "arrival", "operator", "symmetric")
#: The column with modes, which is empty for peers.
_MODES = "sync"


def plot(frame: pandas.DataFrame, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
    """Draws times over bytes on logarithmic axes: a line per algorithm, with its interval.

    The frame is from `read_results` or `read_wisdom`, or a part of one, as in
    `plot(frame[frame.pes == 2])`. If rows also differ in something else, such as the mode or the
    number of PEs, each value gets its line and is in the name of the line. Returns the axes, for
    titles and saving.

    Raises:
        ValueError: if the rows have no bytes or no times.
        ImportError: without matplotlib.
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib, which is not installed: pip install 'consort[plots]'"
        ) from error
    time = next((name for name in _TIMES if name in frame.columns), None)
    if time is None or "bytes" not in frame.columns or "candidate" not in frame.columns:
        kind = frame.attrs.get("kind", "this kind")
        raise ValueError(f"cannot plot figures of {kind}: no times of algorithms over bytes")
    drawn = frame[frame["bytes"].gt(0) & frame[time].gt(0) & frame["candidate"].notna()]
    if drawn.empty:
        raise ValueError("nothing to plot: no row has bytes, an algorithm and a time")
    if ax is None:
        _, ax = pyplot.subplots()
    apart = [name for name in _APART if _differs(drawn, name)]
    if _MODES in drawn.columns and drawn[_MODES].nunique() > 1:
        apart.append(_MODES)
    for key, line in drawn.groupby(["candidate", *apart], dropna=False, sort=True):
        line = line.sort_values("bytes")
        names = [_name(*one) for one in zip(("", *apart), key, strict=True) if _is_there(one[1])]
        (curve,) = ax.plot(line["bytes"], line[time], marker="o", label=", ".join(names))
        low, high = (f"ci95_ns.{end}" for end in ("low", "high"))
        if time == "median_ns" and low in line.columns and high in line.columns:
            known = line[line[low].notna() & line[high].notna()]
            if not known.empty:
                bounds = (known[low].astype(float), known[high].astype(float))
                ax.fill_between(known["bytes"], *bounds, color=curve.get_color(), alpha=0.2)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xlabel("bytes")
    ax.set_ylabel("time in ns")
    ax.legend()
    return ax


def _differs(frame: pandas.DataFrame, name: str) -> bool:
    return name in frame.columns and frame[name].nunique(dropna=False) > 1


def _is_there(value: Any) -> bool:
    return value is not None and value == value


def _name(column: str, value: Any) -> str:
    return str(value) if not column or isinstance(value, str) else f"{column} {value}"
