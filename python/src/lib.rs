//! `consort._consort`: PEs that are threads of a Python program, and their calls on NumPy arrays.
//!
//! | file | what |
//! | --- | --- |
//! | `launch` | runs a function on PEs, and ends them when one fails or somebody presses Ctrl-C |
//! | `running` | the PE that a thread runs, its teams and what it has started |
//! | `team` | a team, as Python sees it |
//! | `arrays` | which Rust type an array is of, and its memory for the time of a call |
//! | `calls` | collectives on that memory |
//! | `requests` | nonblocking collectives, which own their data |
//! | `messages` | messages from one PE to another |
//! | `memory` | symmetric memory |
//! | `errors` | this library's errors as exceptions |
//!
//! What is checked here is what memory safety needs: types, contiguity, lengths, and that nobody
//! else has borrowed an array. Shapes, defaults and results are the business of the Python layer.
//! No other Python thread waits while a PE does: each call gives the interpreter's lock back.

mod arrays;
mod calls;
mod errors;
mod launch;
mod memory;
mod messages;
mod requests;
mod running;
mod team;

use pyo3::prelude::*;

#[pymodule]
fn _consort(module: &Bound<'_, PyModule>) -> PyResult<()> {
    errors::add_to(module)?;
    module.add_function(wrap_pyfunction!(launch::launch, module)?)?;
    module.add_function(wrap_pyfunction!(launch::cores, module)?)?;
    module.add_class::<team::Team>()?;
    module.add_class::<requests::Request>()?;
    module.add_class::<memory::Memory>()
}
