"""The backend `consort` of `torch.distributed`: collectives on tensors in the processor's memory.

Importing this module registers the backend:

>>> import torch
>>> import torch.distributed as dist
>>> import consort.torch
>>> dist.init_process_group("consort", store=dist.HashStore(), rank=0, world_size=1)
>>> tensor = torch.ones(3)
>>> dist.all_reduce(tensor)
>>> tensor
tensor([1., 1., 1.])
>>> dist.destroy_process_group()

The processes are on one machine and belong to one user. They meet by the store of
`init_process_group`, so they need only its own variables.
"""

from __future__ import annotations

import torch.distributed as _dist

from ._group import ProcessGroup

__all__ = ["ProcessGroup"]

_dist.Backend.register_backend("consort", ProcessGroup, devices=["cpu"])
