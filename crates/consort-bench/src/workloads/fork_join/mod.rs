//! Whole programs made of parallel regions, with Consort and with other libraries.
//!
//! 1. `parts`: the trait of a program, and regions whose ranks write parts of an array;
//! 2. `empty`, `nbody`, `tick`, `decode`, `graph`: the programs, each written once;
//! 3. `program`: their names and their check against one thread;
//! 4. `condition`: other work on the cores, more threads, or a quota;
//! 5. `launch`: one program with one library, in a process;
//! 6. `race`: launches of all libraries in turn; `table`: the readable results.

mod condition;
mod decode;
mod empty;
mod graph;
mod launch;
mod nbody;
mod parts;
mod program;
mod race;
mod table;
mod tick;

pub use condition::Condition;
pub use launch::take_part;
pub use program::ForkJoinProgram;
pub use race::{NativeLibraries, Race, Results};
pub use table::show;
