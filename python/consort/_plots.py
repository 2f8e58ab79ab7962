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
#: The kinds of results whose rows are choices: a call has one, which changes with the size.
_CHOICES = ("wisdom", "tune")
#: The columns that a plot with too many lines fixes, the first one first.
_FIXED = ("symmetric", "operator", "sync", "pes")
#: More lines cannot be distinguished, and with more than these the legend would cover them.
_MOST_LINES = 16
_MOST_WITHIN = 5


def plot(frame: pandas.DataFrame, ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
    """Draws times over bytes on logarithmic axes: a line for each algorithm, with its interval.

    The frame is from `read_results` or `read_wisdom`, or a part of one, as in
    `plot(frame[frame.pes == 2])`. If rows also differ in something else, such as the mode or the
    number of PEs, each value gets its line and is in the name of the line. The choices of a wisdom
    are one line for each call, whichever algorithm they are. If that makes more than 16 lines, the
    plot shows only the rows with the most frequent memory, operator, mode and number of PEs, and
    its title names them. Returns the axes, for titles and saving.

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
        _, ax = pyplot.subplots(layout="constrained")
    fixed = []
    for name in _FIXED:
        lines = drawn.groupby(_keys(drawn), dropna=False).ngroups
        if lines > _MOST_LINES and _differs(drawn, name):
            value = drawn[name].mode()[0]
            fixed.append(_name(name, value))
            drawn = drawn[drawn[name] == value]
    keys = _keys(drawn)
    for key, line in drawn.groupby(keys, dropna=False, sort=True):
        line = line.sort_values("bytes")
        names = [_name(*one) for one in zip(keys, key, strict=True) if _is_there(one[1])]
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
    if fixed:
        ax.set_title(", ".join(fixed))
    if len(ax.lines) > _MOST_WITHIN:
        ax.legend(loc="upper left", bbox_to_anchor=(1, 1), fontsize="small")
    else:
        ax.legend()
    return ax


def _keys(frame: pandas.DataFrame) -> list[str]:
    """Returns the columns whose values distinguish the lines."""
    keys = [name for name in _APART if _differs(frame, name)]
    if _MODES in frame.columns and frame[_MODES].nunique() > 1:
        keys.append(_MODES)
    if frame.attrs.get("kind") in _CHOICES:
        return keys or ["collective"]
    return ["candidate", *keys]


def _differs(frame: pandas.DataFrame, name: str) -> bool:
    return name in frame.columns and frame[name].nunique(dropna=False) > 1


def _is_there(value: Any) -> bool:
    return value is not None and value == value


def _name(column: str, value: Any) -> str:
    if column == "pes":
        return f"{value} PEs"
    if column == "symmetric":
        return "symmetric memory" if value else "private memory"
    return value if isinstance(value, str) else f"{column} {value}"
