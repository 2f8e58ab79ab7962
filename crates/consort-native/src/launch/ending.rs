//! How the programs of PEs that are processes end well, together.

use super::job::Job;
use crate::progress::patience::Patience;

impl Job {
    /// Says that this process's programs have ended, well unless the job has failed, if the PEs are
    /// processes.
    pub fn end(&self) {
        if let Some(link) = self.link() {
            return self.tell_end(link);
        }
        if let Some(joined) = &self.joined {
            joined.end();
            if joined.have_all_ended() {
                self.wake_all();
            }
        }
    }

    /// Ends all processes with a status, if a transport connects them: for a program whose process
    /// ends at once. Returns otherwise.
    pub fn abort(&self, status: u8) {
        if let Some(link) = self.link() {
            link.abort(status);
        }
    }

    /// Takes back [`Job::end`]: this process's program goes on, as after a second initialization.
    pub fn resume(&self) {
        if let Some(joined) = &self.joined {
            joined.resume();
        }
    }

    /// Waits until the programs of all PEs have ended well, if they are processes. Returns when the
    /// job has failed, too.
    pub fn await_end(&self) {
        if let Some(link) = self.link() {
            return self.part(link);
        }
        if let Some(joined) = &self.joined {
            let test = || (joined.have_all_ended() || self.is_poisoned()).then_some(());
            let place = self.sleeping_place(joined.member.rank());
            place.wait(Patience::new(self.config().fits()), None, test);
        }
    }
}
