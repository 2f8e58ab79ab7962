//! `consort._consort`: threads or processes of Python as PEs, and their calls on NumPy arrays.
//!
//! | file | what |
//! | --- | --- |
//! | `launch` | runs a function on PEs, and ends them if one fails or the user presses Ctrl-C |
//! | `attach` | runs a function on this process as a PE of a job of processes |
//! | `running` | the PE of a thread, its teams and its pending calls |
//! | `lent` | PEs of attached processes, whose calls any thread makes |
//! | `dispatch` | finds the PE for a call |
//! | `team` | the Python class of a team |
//! | `types` | the types of elements, and the operators on them |
//! | `uses` | the memory that calls use |
//! | `arrays` | a borrow of the memory of an array for a call |
//! | `elements` | the memory of an object that is not an array |
//! | `calls` | collectives on that memory |
//! | `requests` | nonblocking collectives, which own their data |
//! | `messages` | messages from one PE to another |
//! | `objects` | both on byte strings: pickled objects |
//! | `memory` | symmetric memory |
//! | `errors` | converts the library's errors to exceptions |
//!
//! The extension checks what memory safety needs: types, contiguity, lengths, and that no other
//! call has borrowed an array. The Python layer handles shapes, defaults and results. Each call
//! releases the interpreter's lock, so other Python threads run while a PE waits.

mod arrays;
mod attach;
mod calls;
mod dispatch;
mod elements;
mod errors;
mod launch;
mod lent;
mod memory;
mod messages;
mod objects;
mod requests;
mod running;
mod team;
mod types;
mod uses;

use pyo3::prelude::*;

#[pymodule]
fn _consort(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    errors::add_to(module)?;
    module.add_function(wrap_pyfunction!(launch::launch, module)?)?;
    module.add_function(wrap_pyfunction!(launch::cores, module)?)?;
    module.add_function(wrap_pyfunction!(attach::attach, module)?)?;
    module.add_class::<team::Team>()?;
    module.add_class::<elements::Elements>()?;
    module.add_class::<requests::Request>()?;
    module.add_class::<memory::Memory>()?;
    module.add_class::<memory::Part>()
}
