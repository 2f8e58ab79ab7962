//! What a PE does when: spans of computing, communicating and waiting.

use std::{cell::RefCell, time::Instant};

/// What a PE does in a span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Local kernels, and copies between local arrays.
    Compute,
    /// Calls that move data, and copies from and to what they move.
    Communicate,
    /// Waits for nonblocking calls.
    Wait,
}

impl Activity {
    /// All activities.
    pub const ALL: [Self; 3] = [Self::Compute, Self::Communicate, Self::Wait];

    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Communicate => "communicate",
            Self::Wait => "wait",
        }
    }
}

/// A span of time, in nanoseconds from the beginning of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What the PE does.
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
    /// A recorder for a run that begins now.
    #[must_use]
    pub fn begin() -> Self {
        Self { begun: Instant::now(), spans: RefCell::default() }
    }

    /// The time since the beginning of the run.
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

    /// What was recorded, in its order.
    #[must_use]
    pub fn spans(&self) -> Vec<Span> {
        self.spans.borrow().clone()
    }
}
