//! Tells members of what was stored for them, and far ones by packets.

use std::sync::atomic::Ordering::Relaxed;

use consort_fabric::Rank;

use super::group::Group;
use crate::{far::packet::Told, inbox::geometry::LINE_WORDS};

impl Group {
    /// The index of the word with the credits that member `from` has given to member `to`.
    pub(crate) fn credits_at(&self, to: Rank, from: Rank) -> usize {
        let geometry = &self.memory.geometry;
        geometry.member(to, geometry.credits + from.index() * LINE_WORDS)
    }

    /// Tells a member of words that were stored for it, the last of which it may wait for: wakes
    /// it, or sends them if it is far. Returns whether it is far.
    #[cold]
    pub(crate) fn tell(&self, to: Rank, at: usize, words: usize) -> bool {
        let to = self.in_world(to);
        match self.job.far().filter(|far| far.is_far(to)) {
            None => {
                self.job.wake_now(to);
                false
            }
            Some(far) => {
                let words = &self.memory.words[at..at + words];
                let told = Told::Words { group: self.number, to, at };
                far.tell(to, &told, |frame| {
                    frame.extend(words.iter().map(|word| word.load(Relaxed)))
                });
                true
            }
        }
    }

    /// Asks the processes of far members for the words that they publish.
    #[cold]
    pub(crate) fn ask_far_members(&self) {
        let Some(far) = self.job.far() else { return };
        for member in self.others().filter(|&peer| far.is_far(self.in_world(peer))) {
            far.tell(self.in_world(member), &Told::Show { group: self.number, member }, |_| ());
        }
        far.flush();
    }
}
