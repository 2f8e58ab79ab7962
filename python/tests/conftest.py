"""Gives the tests a separate home and environment.

So they neither read nor change the user's wisdom, recorded calls and caches.
"""

import atexit
import os
import shutil
import tempfile

# Otherwise pytest looks for examples in the stub of torch, and tests import it as torch.
collect_ignore = ["stub"]

_PREFIXES = ("CONSORT_", "SHMEM_", "SMA_")

_folder = tempfile.mkdtemp(prefix="consort-test-")


def _remove(folder: str, maker: int) -> None:
    # A test may fork.
    if os.getpid() == maker:
        shutil.rmtree(folder, ignore_errors=True)


atexit.register(_remove, _folder, os.getpid())
for _name in [name for name in os.environ if name.startswith(_PREFIXES)]:
    del os.environ[_name]
# Otherwise programs write a line in pieces, between which others write theirs.
os.environ.pop("PYTHONUNBUFFERED", None)
os.environ["HOME"] = _folder
for _name, _part in [
    ("CONFIG", ".config"),
    ("CACHE", ".cache"),
    ("DATA", ".local/share"),
    ("STATE", ".local/state"),
]:
    os.environ[f"XDG_{_name}_HOME"] = os.path.join(_folder, _part)
os.environ["TMPDIR"] = tempfile.tempdir = os.path.join(_folder, "tmp")
os.mkdir(tempfile.tempdir)
