//! Sections whose data only sections access.
//!
//! Delegation on a machine with a relaxed memory model needs no fence after a section if no other
//! code accesses the section's data. Then the data must be visible only when another thread starts
//! to execute sections (Petrović 2015, section 6.2.2). The algorithms release each answer, because
//! natively the data may be anybody's. So an experiment says which sections are private.
//!
//! Around private sections, these operations have no fence: a release store inside a section,
//! a message, and a release store to a line to which the thread has just stored. The latter is an
//! answer after its result, or a link after its request. All other releases have a fence, such as
//! the one with which a combiner lets the next one combine.

use std::{cell::RefCell, collections::HashSet, rc::Rc};

use consort_machine::Thread;

/// The sections that threads execute at present, whose data only such sections access.
#[derive(Clone, Debug, Default)]
pub struct PrivateSections(Rc<RefCell<HashSet<u32>>>);

impl PrivateSections {
    /// Executes a section on a thread.
    pub async fn execute<T>(&self, thread: Thread, section: impl Future<Output = T>) -> T {
        self.0.borrow_mut().insert(thread.0);
        let result = section.await;
        self.0.borrow_mut().remove(&thread.0);
        result
    }

    /// Returns whether a thread executes a section.
    pub(super) fn is_in(&self, thread: u32) -> bool {
        self.0.borrow().contains(&thread)
    }
}
