//! Plans of messages from one PE to another.
//!
//! A message is a broadcast in the team of its sender and its receiver. One plan serves blocking
//! and nonblocking calls, so a PE may start a send for which its peer makes a blocking receive.
//!
//! | length | algorithm |
//! | --- | --- |
//! | up to [`INBOX_BYTES`] | `flat`: the sender leaves it in the receiver's inbox and continues |
//! | longer | `direct`: the receiver copies it from the sender's buffer; the sender waits |
//!
//! The choice depends only on the length. So neither wisdom nor a forced algorithm changes whether
//! a send waits for its receiver.

use std::sync::Arc;

use consort_fabric::{CallSpec, Candidate, Collective, Pod, SyncModes};
use consort_native::{Operands, Site};

use super::{hold::Hold, plan_cache::Key, plans::Ready};
use crate::Result;

/// The longest message that fits the receiver's inbox, which has 252 lines of 56 bytes for it.
pub(crate) const INBOX_BYTES: usize = 12 << 10;

impl Hold {
    /// Makes a blocking call for a message of `len` elements. `operands` determine whether this PE
    /// is its sender or its receiver.
    #[inline]
    pub(crate) fn message<T: Pod>(
        &self,
        len: usize,
        operands: &Operands<'_>,
        site: Site,
    ) -> Result<()> {
        if let Some(ready) = self.cache.find(&message_key::<T>(&self.message_call::<T>(len), len)) {
            return self.run(&*ready, operands, site);
        }
        let ready = self.message_plan::<T>(len)?;
        self.run_new(&*ready, operands, site)
    }

    /// Returns the plan of a message of `len` elements.
    pub(crate) fn message_plan<T: Pod>(&self, len: usize) -> Result<Arc<dyn Ready>> {
        let call = self.message_call::<T>(len);
        let key = message_key::<T>(&call, len);
        if let Some(ready) = self.cache.share(&key) {
            return Ok(ready);
        }
        drop(self.enter()?); // a rejected call leaves no plan
        let algorithm = if call.bytes <= INBOX_BYTES { "flat" } else { "direct" };
        let ready = self.prepare_message(&call, len, &Candidate::new(algorithm))?;
        self.keep(&call, key, &ready);
        Ok(ready)
    }

    /// Returns the description of a message: a nonblocking call, which must not use parts that only
    /// serve blocking calls, such as the message buffer.
    #[inline]
    fn message_call<T: Pod>(&self, len: usize) -> CallSpec {
        let call = self.spec::<T, T>(Collective::Broadcast, SyncModes::MINE, len, None);
        CallSpec { nonblocking: true, ..call }
    }
}

/// Returns the key of the plan of a message of `len` elements. For zero-sized elements, each length
/// has a plan with a different name, because both PEs must pass the same length.
#[inline]
fn message_key<T: Pod>(call: &CallSpec, len: usize) -> Key {
    let mut key = Key::of(call, None);
    if size_of::<T>() == 0 {
        key.kernel = len;
    }
    key
}
