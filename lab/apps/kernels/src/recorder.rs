//! Records when a PE computes, communicates and waits.

use std::{cell::RefCell, time::Instant};

/// The activity of a PE in a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Local kernels, and copies between local arrays.
    Compute,
    /// Calls that move data, and copies to and from their buffers.
    Communicate,
    /// Waits for nonblocking calls.
    Wait,
}

impl Activity {
    /// All activities.
    pub const ALL: [Self; 3] = [Self::Compute, Self::Communicate, Self::Wait];

    /// Returns the name of the activity.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communicate => "communicate",
            Self::Wait => "wait",
        }
    }
}

/// A span of time, in nanoseconds from the start of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The activity of the PE.
    pub activity: Activity,
    /// When it begins.
    pub from_ns: u64,
    /// When it ends.
    pub to_ns: u64,
}

/// Records the spans of one PE.
#[derive(Debug)]
pub struct Recorder {
    begun: Instant,
    spans: RefCell<Vec<Span>>,
}

impl Recorder {
    /// Returns a recorder for a run that starts now.
    #[must_use]
    pub fn begin() -> Self {
        Self { begun: Instant::now(), spans: RefCell::default() }
    }

    /// Returns the time since the start of the run.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).expect("a run of less than centuries")
    }

    /// Runs `body`, which computes.
    pub fn compute<R>(&self, body: impl FnOnce() -> R) -> R {
        self.record(Activity::Compute, body)
    }

    /// Runs `body`, which communicates.
    pub fn communicate<R>(&self, body: impl FnOnce() -> R) -> R {
        self.record(Activity::Communicate, body)
    }

    /// Runs `body`, which waits.
    pub fn wait<R>(&self, body: impl FnOnce() -> R) -> R {
        self.record(Activity::Wait, body)
    }

    fn record<R>(&self, activity: Activity, body: impl FnOnce() -> R) -> R {
        let from_ns = self.elapsed_ns();
        let result = body();
        let span = Span { activity, from_ns, to_ns: self.elapsed_ns() };
        self.spans.borrow_mut().push(span);
        result
    }

    /// Returns the recorded spans, in order.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.spans.borrow().clone()
    }
}
