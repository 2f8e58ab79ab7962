//! The time that a core has spent, but for which it has not slept yet. It sleeps for this time in
//! its next access to the mesh.

use crate::{account::Cause, costs::Site, engine::Time};

/// A core with time that it has not slept for yet. The next access adds it.
pub(super) struct Pace<'s> {
    pub(super) site: Site<'s>,
    pub(super) ahead: Time,
}

impl<'s> Pace<'s> {
    pub(super) fn new(site: Site<'s>) -> Self {
        Self { site, ahead: 0 }
    }

    pub(super) fn spend(&mut self, cause: Cause, time: Time) {
        self.site.account.spend(cause, time);
        self.ahead += time;
    }

    pub(super) async fn settle(&mut self) {
        let ahead = std::mem::take(&mut self.ahead);
        self.site.engine.sleep(ahead).await;
    }
}
