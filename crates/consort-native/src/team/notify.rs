//! Tells members that words were stored for them. Sends packets to far members.

use consort_fabric::Rank;

use super::group::Group;
use crate::{far::pe::PendingReplies, inbox::geometry::LINE_WORDS};

/// Requests to the processes of far members.
pub(crate) struct MemberFence<'g> {
    replies: PendingReplies<'g>,
    /// Whether all had replied at the last check.
    is_over: bool,
}

impl MemberFence<'_> {
    /// Returns whether all had replied before the previous check. If so, this process has since
    /// looked for everything that arrived before the replies, and the PE's own operations have
    /// processed it.
    pub(crate) fn is_over(&mut self) -> bool {
        std::mem::replace(&mut self.is_over, self.replies.are_all_there())
    }
}

impl Group {
    /// Returns the index of the word with the credits that member `from` has given to member `to`.
    pub(super) fn credits_at(&self, to: Rank, from: Rank) -> usize {
        let geometry = &self.memory.geometry;
        geometry.member(to, geometry.credits + from.index() * LINE_WORDS)
    }

    /// Notifies a member of words that were stored for it. It may wait for the last of them. Wakes
    /// the member, or sends it the words if it is far. Returns whether it is far.
    #[cold]
    pub(crate) fn notify(&self, to: Rank, at: usize, words: usize) -> bool {
        let to = self.in_world(to);
        let far = self.job.far_to(to);
        match far {
            Some(far) => far.send_words(self.number, at, &self.memory.words[at..at + words]),
            None => self.job.wake_now(to),
        }
        far.is_some()
    }

    /// Sends a request to the processes of far members. A reply shows that whatever its process
    /// sent before has arrived.
    #[cold]
    pub(crate) fn fence_far_members(&self) -> MemberFence<'_> {
        let others = self.others().map(|peer| self.in_world(peer));
        MemberFence { replies: self.job.fence_pes(others), is_over: false }
    }

    /// Requests the words that far members publish from their processes. Skips a process that has
    /// not yet replied to the previous request.
    #[cold]
    pub(crate) fn request_published(&self) {
        for member in self.others() {
            if let Some(far) = self.job.far_to(self.in_world(member)) {
                far.request_published(self.number, member);
            }
        }
        self.job.flush();
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri, consort_portable))))]
mod tests {
    use std::sync::Arc;

    use consort_fabric::Nodes;

    use super::*;
    use crate::{
        far::loopback::Loopback,
        launch::{
            config::Config,
            job::Job,
            memory::{JobMemory, SharedFile},
        },
    };

    /// The number of looks after which everything that was sent has certainly arrived.
    const LOOKS: u32 = 10;

    /// Two processes of a node send a far PE the same request. The first reply arrives last.
    #[test]
    fn late_answer_undoes_nothing() {
        let forms = [Nodes::Blocks(1), Nodes::Blocks(2)];
        let config = Config { pes: 3, here: 3, nodes: forms[1], ..Config::of_two() };
        let [of_node, of_far] = [(); 2].map(|()| SharedFile::new().expect("a file"));
        let found = SharedFile::find(of_node.at()).expect("the file");
        let memories = [
            JobMemory::create(config.clone(), of_node, None),
            JobMemory::map(config.clone(), found, None),
            JobMemory::create(config, of_far, None),
        ];
        let ends = Loopback::ends(3, 0).into_iter().zip(memories);
        let jobs = ends.map(|(end, memory)| {
            let memory = memory.expect("some memory");
            Job::linked(memory, Box::new(end), forms).expect("some memory")
        });
        let all: Vec<Rank> = (0..3).map(Rank).collect();
        let group = |(job, &rank): (Arc<Job>, _)| {
            Group::new(&job, job.world, all.clone().into(), rank).expect("mapped")
        };
        let groups: Vec<Group> = jobs.zip(&all).map(group).collect();
        let serve = |process: usize| (0..LOOKS).for_each(|_| groups[process].job.serve());
        let has_finished = || groups[0].memory.has_finished(Rank(2), groups[0].job.region());
        groups[0].request_published();
        serve(2);
        groups[2].finish(7);
        groups[1].request_published();
        serve(2);
        assert!(!has_finished());
        serve(1);
        assert!(has_finished());
        serve(0);
        assert!(has_finished(), "the first reply is from before");
    }
}
