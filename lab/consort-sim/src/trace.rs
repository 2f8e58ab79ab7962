//! Traces of the operations of PEs, in the trace format that Chrome and Perfetto read.

use std::{cell::RefCell, io};

use consort_fabric::{TRACE_BEGIN, TRACE_END, TRACE_SEPARATOR, TraceEvent, TraceValue};

use crate::engine::Time;

/// One operation of a PE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The PE.
    pub pe: u32,
    /// The name of the operation.
    pub what: &'static str,
    /// The peer, if the operation has one.
    pub peer: Option<u32>,
    /// When it began, in picoseconds.
    pub from_ps: u64,
    /// When it ended, in picoseconds.
    pub to_ps: u64,
    /// The number of bytes that it moved.
    pub bytes: usize,
}

impl Step {
    fn event(&self) -> String {
        let Self { pe, what, peer, from_ps, to_ps, bytes } = *self;
        let mut arguments = vec![("bytes", TraceValue::Number(bytes as u64))];
        arguments.extend(peer.map(|peer| ("peer", TraceValue::Number(peer.into()))));
        let (begun_ps, took_ps, arguments) = (from_ps, to_ps - from_ps, &*arguments);
        let event = TraceEvent { name: what, process: 0, thread: pe, begun_ps, took_ps, arguments };
        event.to_string()
    }
}

/// The operations of all PEs, in the order in which they ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    steps: Vec<Step>,
}

impl Trace {
    /// Returns all operations.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Writes the trace as a JSON object: one complete event for each operation, with times in
    /// microseconds, and one thread for each PE.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, to: &mut impl io::Write) -> io::Result<()> {
        let mut text = String::from(TRACE_BEGIN);
        for (index, step) in self.steps.iter().enumerate() {
            if index > 0 {
                text.push_str(TRACE_SEPARATOR);
            }
            text.push_str(&step.event());
        }
        text.push_str(TRACE_END);
        to.write_all(text.as_bytes())
    }
}

/// Records a trace, if it is enabled.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    trace: Option<RefCell<Trace>>,
}

impl Recorder {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { trace: wanted.then(RefCell::default) }
    }

    /// Records an operation of a PE.
    pub(crate) fn note(
        &self,
        pe: u32,
        what: &'static str,
        peer: Option<u32>,
        times: (Time, Time),
        bytes: usize,
    ) {
        if let Some(trace) = &self.trace {
            let (from_ps, to_ps) = times;
            trace.borrow_mut().steps.push(Step { pe, what, peer, from_ps, to_ps, bytes });
        }
    }

    /// Returns the trace.
    pub(crate) fn finish(self) -> Trace {
        self.trace.map(RefCell::into_inner).unwrap_or_default()
    }
}
