//! Panics of operators, closures, payloads and results, caught or not: no memory is used after its
//! lifetime, all PEs get the panicking PE's message, and no PE hangs.

mod drops;
mod handlers;
mod operators;
mod scopes;

use std::{panic::panic_any, thread};

use consort::ops::Operator;
use consort_fabric::OperatorClass;

/// Panics when it is dropped, with a payload that does so once less.
#[derive(Debug)]
struct Bad(u32);

impl Drop for Bad {
    fn drop(&mut self) {
        // A second panic during unwinding would abort the process.
        if self.0 > 0 && !thread::panicking() {
            panic_any(Self(self.0 - 1));
        }
    }
}

/// The behaviour of an operator of these tests on PE 0.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Panics with a text.
    Text,
    /// Panics with a payload whose `Drop` panics.
    BadPayload,
    /// Panics when it is dropped.
    BadDrop,
}

struct Faulty {
    fault: Fault,
    drops: Bad,
}

impl Faulty {
    fn new(fault: Fault) -> Self {
        Self { fault, drops: Bad(u32::from(fault == Fault::BadDrop)) }
    }
}

impl Operator<u64> for Faulty {
    const CLASS: OperatorClass = OperatorClass::Commutative;
    const NAME: &'static str = "faulty";

    fn apply(&self, left: u64, right: u64) -> u64 {
        match self.fault {
            Fault::Text => panic!("no sums here"),
            Fault::BadPayload => panic_any(Bad(2)),
            Fault::None | Fault::BadDrop => {}
        }
        left + right + u64::from(self.drops.0 > 1)
    }
}
