//! Barriers, broadcasts and reductions, each algorithm once, over any fabric.
