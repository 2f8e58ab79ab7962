//! The coordinator is the process of PE 0. It decides for all processes: the places of blocks in
//! the heaps, the numbers of groups, and the numbers of call names. Its directory has these
//! entries, and the processes that share this directory use them directly. The places of groups are
//! local to a segment, so each directory has those of its segment. In a job without far PEs, all
//! processes share the coordinator's directory.

use std::collections::HashSet;

use consort_fabric::Rank;

use super::{
    link::Far,
    packet::{self, Packet, Request},
};
use crate::{
    directory::{
        blocks::{Allocation, AllocationKey, HeapError},
        call_names::NumbersExhausted,
        group_error::GroupError,
        groups::{GroupKey, GroupPlace},
        locked_words::size,
    },
    launch::job::Job,
};

/// The PE whose process decides.
const COORDINATOR: Rank = Rank(0);

const TAKEN: u64 = 0;
const EXHAUSTED: u64 = 1;
const TOO_MANY: u64 = 2;

/// The number that means no group.
const NO_GROUP: u64 = u64::MAX;

impl Job {
    /// Returns the link to the process that decides, or `None` if this process shares its
    /// directory.
    fn coordinator(&self) -> Option<&Far> {
        self.far().filter(|far| far.is_far(COORDINATOR))
    }

    /// Returns the decision of the process of PE 0, or `None` if the job has failed.
    fn decision(&self, request: Request, data: &[u64]) -> Option<Vec<u64>> {
        match self.coordinator() {
            Some(far) => self.request(far, COORDINATOR, request, |frame| frame.extend(data)),
            None => self.decide(request, data),
        }
    }

    /// Decides, in a process that shares the directory of PE 0.
    pub(super) fn decide(&self, request: Request, data: &[u64]) -> Option<Vec<u64>> {
        let directory = self.directory()?;
        Some(match request {
            Request::Number { bytes } => {
                let name = String::from_utf8(packet::bytes_of(data, bytes)?).ok()?;
                // Processes on other nodes hold the numbers of their recent calls.
                let recent = |note: &mut dyn FnMut(u64)| self.note_recent(&directory, note);
                match directory.hold_name(&name, recent) {
                    Ok(number) => vec![number],
                    Err(NumbersExhausted { most }) => vec![0, most as u64],
                }
            }
            Request::Name { number } => {
                let name = directory.name(number).unwrap_or_default();
                let bytes = name.len() as u64;
                std::iter::once(bytes).chain(packet::words_of(name.as_bytes())).collect()
            }
            Request::Block { group, number, holders, requested } => {
                match directory.allocate((group, number), holders, requested) {
                    Ok(Allocation { at, fresh }) => vec![TAKEN, at as u64, fresh as u64],
                    Err(HeapError::Exhausted { free, largest, .. }) => {
                        vec![EXHAUSTED, free as u64, largest as u64]
                    }
                    Err(HeapError::TooMany { most }) => vec![TOO_MANY, most as u64, 0],
                    Err(HeapError::System { .. } | HeapError::Failed) => return None,
                }
            }
            Request::Group { forming, pes } => {
                let number = directory.number_group(forming, pes);
                vec![number.unwrap_or(NO_GROUP), directory.numbered_below()]
            }
            Request::Fence {}
            | Request::Report {}
            | Request::Describe { .. }
            | Request::Published { .. }
            | Request::Get { .. }
            | Request::Atomic { .. } => return None,
        })
    }

    /// Returns the number of a call's name, and adds a hold to it.
    pub(crate) fn hold_name(&self, name: &str) -> Result<u64, NumbersExhausted> {
        let words: Vec<u64> = packet::words_of(name.as_bytes()).collect();
        match self.decision(Request::Number { bytes: name.len() }, &words).as_deref() {
            Some([0, most, ..]) => Err(NumbersExhausted { most: size(*most) }),
            Some([number, ..]) => Ok(*number),
            None | Some([]) => Err(NumbersExhausted { most: 0 }),
        }
    }

    /// Removes a hold from the number of a name. The process that decides does not know the recent
    /// calls of other nodes, so those nodes keep the numbers of their recent calls.
    pub(crate) fn release_name(&self, number: u64) {
        let Some(far) = self.coordinator() else {
            return self.directory().into_iter().for_each(|all| all.release_name(number));
        };
        let recent = || {
            let mut recent = HashSet::new();
            if let Some(directory) = self.directory() {
                self.note_recent(&directory, &mut |number| recent.extend([number]));
            }
            move |number| recent.contains(&number)
        };
        for number in far.released.keep(number, recent) {
            if !self.is_poisoned() {
                far.send(COORDINATOR, &Packet::ReleaseName { number }, |_| ());
            }
        }
    }

    /// Returns the name with this number.
    pub(crate) fn name(&self, number: u64) -> Option<String> {
        let reply = self.decision(Request::Name { number }, &[])?;
        let (&bytes, text) = reply.split_first()?;
        let bytes = packet::bytes_of(text, usize::try_from(bytes).ok()?)?;
        String::from_utf8(bytes).ok().filter(|name| !name.is_empty())
    }

    /// Returns the block of an allocation, with `holders` holds on it. All members of the group
    /// call this.
    pub(crate) fn allocate_block(
        &self,
        (group, number): AllocationKey,
        holders: usize,
        requested: usize,
    ) -> Result<Allocation, HeapError> {
        let heap = self.config().heap_bytes;
        let request = Request::Block { group, number, holders, requested };
        match self.decision(request, &[]).ok_or(HeapError::Failed)?[..] {
            [TAKEN, at, fresh] => Ok(Allocation { at: size(at), fresh: size(fresh) }),
            [EXHAUSTED, free, largest] => {
                Err(HeapError::exhausted(requested, size(free), size(largest), heap))
            }
            [TOO_MANY, most, _] => Err(HeapError::TooMany { most: size(most) }),
            _ => Err(HeapError::Failed),
        }
    }

    /// Adds a hold to a block. Returns whether the hold is counted. It is not once the job has
    /// failed.
    pub(crate) fn hold_block(&self, (group, number): AllocationKey) -> bool {
        let Some(far) = self.coordinator() else {
            return self.directory().map(|directory| directory.hold((group, number))).is_some();
        };
        let is_counted = !self.is_poisoned();
        if is_counted {
            far.send(COORDINATOR, &Packet::Hold { group, number }, |_| ());
        }
        is_counted
    }

    /// Removes a hold from a block. Once the job has failed, the memory may stay allocated.
    pub(crate) fn release_block(&self, (group, number): AllocationKey) {
        self.with_far(|far| {
            if far.link().writes.has_pending_puts() {
                self.settle_far(far); // these puts must not reach the PEs that get the memory next
            }
        });
        match self.coordinator() {
            Some(_) if self.is_poisoned() => {}
            Some(far) => far.release(COORDINATOR, &Packet::Release { group, number }),
            None => self.directory().into_iter().for_each(|all| all.release((group, number))),
        }
    }

    /// Joins the group that is being formed, for one of its PEs. `ranks` are the ranks of all its
    /// PEs in the world, and `bytes` is the size of its memory. Returns the group's place, and the
    /// last argument of [`Self::deliver_early`].
    pub(crate) fn join_group(
        &self,
        forming: GroupKey,
        ranks: &[Rank],
        bytes: usize,
    ) -> Result<(GroupPlace, Option<u64>), GroupError> {
        let Some(far) = self.far() else {
            let directory = self.directory().ok_or(GroupError::Failed)?;
            return Ok((directory.join(forming, ranks.len(), bytes)?, None));
        };
        let begun = far.link().memberships.begin_joining();
        match self.ask_for_group(far, forming, ranks, bytes) {
            Ok(place) => Ok((place, Some(begun))),
            Err(error) => {
                far.link().memberships.end_joining(begun, None);
                Err(error)
            }
        }
    }

    fn ask_for_group(
        &self,
        far: &Far,
        forming: GroupKey,
        ranks: &[Rank],
        bytes: usize,
    ) -> Result<GroupPlace, GroupError> {
        let request = Request::Group { forming, pes: ranks.len() };
        let reply = self.decision(request, &[]).ok_or(GroupError::Failed)?;
        let &[number, numbered] = reply.first_chunk().ok_or(GroupError::Failed)?;
        far.link().memberships.note_numbered(numbered);
        if number == NO_GROUP {
            return Err(GroupError::PeerExhausted);
        }
        let here = ranks.iter().filter(|&&pe| !far.is_far(pe)).count();
        let directory = self.directory().ok_or(GroupError::Failed)?;
        let place = directory.place_group(number, ranks.len(), here, bytes)?;
        drop(directory);
        Ok(place)
    }

    /// Leaves a group on behalf of one of its members in this process.
    pub(crate) fn leave_group(&self, group: u64) {
        // The link stays locked, so that no packet is stored in the group's memory any more:
        // another process may free it.
        let _link = self.far().map(|far| {
            let mut link = far.link();
            link.leave(group, || self.left(group));
            link
        });
        if let Some(directory) = self.directory() {
            directory.leave(group);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(any(loom, miri, consort_portable))))]
pub(super) mod tests {
    use std::{sync::Arc, thread};

    use consort_fabric::{Nodes, Signal};

    use super::*;
    use crate::{
        directory::lock::NAMES,
        far::loopback::Loopback,
        heap::word::Width,
        launch::{
            call_number::CallNumber,
            config::Config,
            memory::{JobMemory, SharedFile},
        },
        segment::page::PAGE,
    };

    /// After this many teams, all processes have certainly noticed that a freed team can be
    /// forgotten.
    const TEAMS: u64 = 3_000;

    /// The number of looks after which everything that was sent has certainly arrived.
    const LOOKS: u32 = 10;

    /// Returns three processes with one PE each, which share no memory.
    pub(in crate::far) fn three() -> Vec<Arc<Job>> {
        let nodes = Nodes::Blocks(1);
        let config = Config { pes: 3, here: 1, nodes, ..Config::of_two() };
        let job = |end| {
            let file = SharedFile::new().expect("a file");
            let memory = JobMemory::create(config.clone(), file, None).expect("some memory");
            Job::linked(memory, Box::new(end), [nodes; 2]).expect("some memory")
        };
        Loopback::ends(3, 0).into_iter().map(job).collect()
    }

    /// Looks until everything that was sent has certainly arrived.
    pub(in crate::far) fn serve(job: &Job) {
        (0..LOOKS).for_each(|_| job.serve());
    }

    /// A put in flight would overwrite the data of the PEs that get the memory next.
    #[test]
    fn memory_is_freed_once_its_puts_arrive() {
        let jobs = three();
        let allocate = |number| {
            let directory = jobs[0].directory().expect("a sound job");
            directory.allocate((0, number), 1, 64).expect("room").at
        };
        let first = allocate(1);
        let far = jobs[2].far().expect("far PEs");
        let word = Signal::Set(1);
        far.write(
            Rank(1),
            &Packet::Signal { pe: Rank(1), word: 0, width: Width::Eight, how: word },
            |_| (),
        );
        thread::scope(|scope| {
            let drops = scope.spawn(|| jobs[2].release_block((0, 1)));
            for _ in 0..100 {
                serve(&jobs[0]);
                thread::yield_now();
            }
            assert!(!drops.is_finished());
            assert_ne!(allocate(2), first);
            while !drops.is_finished() {
                serve(&jobs[1]);
            }
        });
        jobs[2].serve();
        serve(&jobs[0]);
        assert_eq!(allocate(3), first);
    }

    /// Processes do not keep anything about each team that ever existed.
    #[test]
    fn freed_teams_are_forgotten() {
        let jobs = three();
        let members = [Rank(1), Rank(2)];
        let ask_for_other = |other| {
            let forming = GroupKey::Color(0, other, 1);
            jobs[0].decide(Request::Group { forming, pes: 2 }, &[]);
        };
        ask_for_other(0);
        let made = |team| {
            // Some other team is always being formed.
            ask_for_other(team + 1);
            ask_for_other(team);
            for job in &jobs[1..] {
                let far = job.far().expect("far PEs");
                let forming = GroupKey::Color(0, team, 0);
                let (place, begun) = job.join_group(forming, &members, PAGE).expect("room");
                job.deliver_early(place.number, begun);
                job.leave_group(place.number);
                assert!(far.link().memberships.is_late(place.number));
            }
        };
        thread::scope(|scope| {
            let teams = scope.spawn(|| (0..TEAMS).for_each(made));
            while !teams.is_finished() {
                jobs[0].serve();
                thread::yield_now();
            }
            teams.join().expect("no panic");
        });
        for job in &jobs[1..] {
            assert!(job.far().expect("far PEs").link().memberships.listed() < 1000);
        }
    }

    /// A program may make more different calls than there are numbers.
    #[test]
    fn call_numbers_are_reused() {
        let jobs = three();
        thread::scope(|scope| {
            let names = scope.spawn(|| {
                (0..NAMES + 1000)
                    .all(|call| CallNumber::new(&jobs[1], &format!("call {call}")).is_ok())
            });
            while !names.is_finished() {
                jobs[0].serve();
            }
            assert!(names.join().expect("no panic"));
        });
    }
}
