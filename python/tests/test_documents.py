"""Runs the programs in the documents."""

import re
import sys
import types
from pathlib import Path

import matplotlib
import pytest

matplotlib.use("Agg")
pytest.importorskip("pandas")

TREE = Path(__file__).parents[2]
FIGURE = """\
{"bench": "broadcast", "algorithm": "flat", "bytes": 8, "median_ns": 50, "ci95_ns": [40, 60]}
"""
WISDOM = """\
[wisdom]
format = 3
machine = "a machine"

[[entry]]
collective = "reduce"
bytes = 8
choice = "flat"
median_ns = 40.0
"""


@pytest.mark.parametrize("document", ["python/README.md", "docs/python.md"])
def test_programs_run(document, tmp_path, monkeypatch):
    (tmp_path / "out.json").write_text(FIGURE)
    (tmp_path / "wisdom.toml").write_text(WISDOM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CONSORT_WISDOM", "wisdom.toml")
    blocks = re.findall(r"```python\n(.*?)```", (TREE / document).read_text(), re.DOTALL)
    assert blocks
    # A module, so that programs can pickle their functions.
    module = types.ModuleType("documented")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in blocks:
        if "import consort.torch" in block:
            continue  # test_torch.py runs it
        exec(compile(block, document, "exec"), vars(module))
    shown = list(tmp_path.glob("*.svg"))
    assert bool(shown) == ("savefig" in "".join(blocks))
