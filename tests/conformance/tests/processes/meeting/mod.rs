//! Jobs of processes that no launcher of Consort has started: they meet by a name, or exchange bytes
//! in another way.
//!
//! | file | what |
//! | --- | --- |
//! | `running` | starts processes, and checks how they end |
//! | `programs` | the programs of the processes |
//! | `starts`, `ends`, `bad_input` | the tests |
//! | `pieces` | tests of calls in pieces, and their programs |

mod bad_input;
mod ends;
mod pieces;
mod programs;
mod running;
mod starts;

use libtest_mimic::Trial;

pub(crate) use programs::{arguments, run};

pub(crate) fn tests() -> impl Iterator<Item = Trial> {
    let tests = starts::tests().into_iter().chain(ends::tests()).chain(bad_input::tests());
    tests.chain(pieces::tests())
}
