//! The consort command: topology, tuning, benchmarks, and the papers' figures.
fn main() {}
