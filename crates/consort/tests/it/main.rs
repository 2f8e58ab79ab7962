//! Tests of the public interface, one module a subject.
//!
//! `registry` lists what is to be tested, `data` makes and knows the data, `typed` calls any
//! collective by its method, and `turns` sees to it
//! that jobs run one after another.

mod async_broadcasts;
mod bad_input;
mod call_sites;
mod counters;
mod data;
mod failure;
mod gigabyte;
mod handles;
mod memory;
mod nonblocking;
mod numbers;
mod one_sided;
mod online;
mod operators;
mod panics;
mod programs;
mod promises;
mod registry;
mod runs;
mod send;
mod stuck;
mod teams;
mod turns;
mod typed;
mod vector;
