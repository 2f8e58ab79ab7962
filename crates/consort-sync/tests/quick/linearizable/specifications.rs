//! Sequential objects, for the checker.

use std::collections::VecDeque;

use todc_utils::specifications::Specification;

/// An operation with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Put(u64),
    Take(Option<u64>),
    /// With the previous count.
    Increment(u64),
}
use Operation::{Increment, Put, Take};

/// Sequential objects: first in first out, last in first out, and a counter.
pub(super) struct Fifo;
pub(super) struct Lifo;
pub(super) struct Counts;

impl Specification for Fifo {
    type State = VecDeque<u64>;
    type Operation = Operation;

    fn init() -> Self::State {
        VecDeque::new()
    }

    fn apply(operation: &Operation, state: &Self::State) -> (bool, Self::State) {
        let mut state = state.clone();
        let is_right = match *operation {
            Put(value) => {
                state.push_back(value);
                true
            }
            Take(value) => state.pop_front() == value,
            Increment(_) => false,
        };
        (is_right, state)
    }
}

impl Specification for Lifo {
    type State = Vec<u64>;
    type Operation = Operation;

    fn init() -> Self::State {
        Vec::new()
    }

    fn apply(operation: &Operation, state: &Self::State) -> (bool, Self::State) {
        let mut state = state.clone();
        let is_right = match *operation {
            Put(value) => {
                state.push(value);
                true
            }
            Take(value) => state.pop() == value,
            Increment(_) => false,
        };
        (is_right, state)
    }
}

impl Specification for Counts {
    type State = u64;
    type Operation = Operation;

    fn init() -> u64 {
        0
    }

    fn apply(operation: &Operation, state: &u64) -> (bool, u64) {
        (*operation == Increment(*state), *state + 1)
    }
}
