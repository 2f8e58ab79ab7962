//! Converts the library's errors to exceptions.

use consort::{
    Rank,
    error::{CallError, LaunchError},
};
use pyo3::{
    create_exception,
    exceptions::{PyMemoryError, PyRuntimeError, PyValueError},
    prelude::*,
};

create_exception!(consort, Error, PyRuntimeError, "A call or a launch failed.");
create_exception!(consort, PeFailed, Error, "Another PE failed; the message has its rank.");
create_exception!(
    consort,
    Mismatched,
    Error,
    "PEs made different calls where all must make the same call, or waited for each other."
);

/// Adds the exceptions to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("PeFailed", py.get_type::<PeFailed>())?;
    module.add("Mismatched", py.get_type::<Mismatched>())
}

/// The names of Rust in messages, and those of Python.
const NAMES: [(&str, &str); 2] =
    [("`Rendezvous::timeout`", "`timeout`"), ("Job::threads", "`consort.launch`")];

/// Returns an error's message, with the names of Python, and without the places in the source that
/// the library names: they are lines of this extension. The traceback shows the line of the program.
pub(crate) fn message(error: &consort::Error) -> String {
    let text = error.to_string();
    let text = NAMES.iter().fold(text, |text, (rust, python)| text.replace(rust, python));
    let mut parts = text.split(" at src/");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        let end = part.find(".rs:").map_or(0, |at| at + ".rs:".len());
        text + part[end..].trim_start_matches(|c: char| c.is_ascii_digit())
    })
}

/// Returns the exception for an error. If a PE has failed, `pe_rank` is its rank.
pub(crate) fn exception(error: &consort::Error) -> PyErr {
    let message = message(error);
    match error {
        consort::Error::PeFailed { rank, .. } => {
            let raised = PeFailed::new_err(message);
            Python::attach(|py| raised.value(py).setattr("pe_rank", rank.0))
                .map_or_else(|failed| failed, |()| raised)
        }
        consort::Error::Mismatched(_) => Mismatched::new_err(message),
        consort::Error::Memory(_) => PyMemoryError::new_err(message),
        consort::Error::Call(
            CallError::RootOutOfRange { .. }
            | CallError::RankOutOfRange { .. }
            | CallError::OwnMessage { .. }
            | CallError::Lengths { .. }
            | CallError::PlannedLength { .. }
            | CallError::Blocks { .. }
            | CallError::LengthWithCounts { .. }
            | CallError::OutOfBounds { .. }
            | CallError::Team(_),
        )
        | consort::Error::Launch(LaunchError::NoPes | LaunchError::TooManyPes { .. }) => {
            PyValueError::new_err(message)
        }
        _ => Error::new_err(message),
    }
}

/// Converts a number to a rank.
pub(crate) fn rank(number: i64, size: usize) -> PyResult<Rank> {
    let found = usize::try_from(number).ok().filter(|rank| *rank < size).map(Rank::new);
    found.ok_or_else(|| {
        let last = size - 1;
        PyValueError::new_err(format!(
            "PE {number} is not in the team: its {size} PEs have ranks 0 to {last}"
        ))
    })
}
