//! Tells members of what was stored for them, and far ones by packets.

use std::sync::atomic::Ordering::Relaxed;

use consort_fabric::Rank;

use super::group::Group;
use crate::{
    far::packet::{Question, Told},
    inbox::geometry::LINE_WORDS,
};

/// What the processes of far members were asked. What they sent before has come with the answers.
pub(crate) struct Asked<'g> {
    group: &'g Group,
    left: Vec<u64>,
    /// Whether all had answered when this was last looked at.
    is_over: bool,
}

impl Asked<'_> {
    /// Whether all had answered before the last look, so that what came has been looked for since,
    /// and also what the PE's own operations have made of it.
    pub(crate) fn is_over(&mut self) -> bool {
        let answer = |id| self.group.job.far().is_none_or(|far| far.answer(id).is_some());
        self.left.retain(|&id| !answer(id));
        std::mem::replace(&mut self.is_over, self.left.is_empty())
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        let Some(far) = self.group.job.far() else { return };
        self.left.iter().for_each(|&id| far.forget(id));
    }
}

impl Group {
    /// The index of the word with the credits that member `from` has given to member `to`.
    pub(super) fn credits_at(&self, to: Rank, from: Rank) -> usize {
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

    /// Asks the processes of far members whether they are there.
    #[cold]
    pub(crate) fn ask_whether_there(&self) -> Asked<'_> {
        let mut left = Vec::new();
        if let Some(far) = self.job.far() {
            let others = self.others().map(|peer| self.in_world(peer));
            let ask = |peer| far.ask(peer, Question::Done {}, |_| ());
            left.extend(others.filter(|&peer| far.is_far(peer)).map(ask));
            far.flush();
        }
        Asked { group: self, left, is_over: false }
    }

    /// Asks the processes of far members for the words that they publish, unless they have been
    /// asked and have not answered.
    #[cold]
    pub(crate) fn ask_far_members(&self) {
        let Some(far) = self.job.far() else { return };
        for member in self.others().filter(|&peer| far.is_far(self.in_world(peer))) {
            far.ask_to_show(self.in_world(member), self.number, member);
        }
        far.flush();
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri, consort_portable))))]
mod tests {
    use std::sync::Arc;

    use consort_fabric::Nodes;

    use super::*;
    use crate::{
        far::{link::Far, loopback::Loopback},
        launch::{
            config::Config,
            job::Job,
            memory::{JobMemory, SharedFile},
        },
    };

    /// Looks after which what was sent has surely come.
    const LOOKS: u32 = 10;

    /// Two processes of a node ask the same of a far PE. The first answer comes last.
    #[test]
    fn a_late_answer_takes_nothing_back() {
        let forms = [Nodes::Blocks(1), Nodes::Blocks(2)];
        let config = Config { pes: 3, here: 3, nodes: forms[1], ..Config::of_two() };
        let [of_node, of_far] = [(); 2].map(|()| SharedFile::new().expect("a file"));
        let found = SharedFile::find(of_node.at()).expect("the file");
        let memories = [
            JobMemory::fill(config.clone(), of_node, None),
            JobMemory::filled(config.clone(), found, None),
            JobMemory::fill(config, of_far, None),
        ];
        let ends = Loopback::ends(3, 0).into_iter().zip(memories);
        let jobs = ends.map(|(end, memory)| {
            let far = Far::new(Box::new(end), 3, forms);
            Job::linked(memory.expect("some memory"), far).expect("some memory")
        });
        let all: Vec<Rank> = (0..3).map(Rank).collect();
        let group = |(job, &rank): (Arc<Job>, _)| {
            Group::new(&job, job.world, all.clone().into(), rank).expect("mapped")
        };
        let groups: Vec<Group> = jobs.zip(&all).map(group).collect();
        let serve = |process: usize| (0..LOOKS).for_each(|_| groups[process].job.serve());
        let has_finished = || groups[0].memory.has_finished(Rank(2), groups[0].job.region());
        groups[0].ask_far_members();
        serve(2);
        groups[2].finish(7);
        groups[1].ask_far_members();
        serve(2);
        assert!(!has_finished());
        serve(1);
        assert!(has_finished());
        serve(0);
        assert!(has_finished(), "the first answer is from before");
    }
}
