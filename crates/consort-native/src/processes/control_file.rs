//! The file that the processes of a job share, from the view of a process or of the launcher.

use std::{
    fs::File,
    io,
    ops::Deref,
    sync::{
        Arc,
        atomic::Ordering::{Relaxed, SeqCst},
    },
};

use consort_fabric::Rank;

use super::{
    binding::Binding,
    control::{self, ControlBlock, LaunchSlot, MOST_PROCESSES, ProcessSlot},
    process_end::ProcessEnd,
};
use crate::{
    launch::{failure::Failure, layout, reason},
    segment::{
        memory_error::MemoryError,
        reservation::Segment,
        slice::{SegmentRef, SegmentSlice},
    },
    state::{
        access_flag::AccessFlag,
        header::{Header, PeState},
    },
    system::process as system,
};
use consort_machine::sync::futex::Scope;

/// The file, with the control block at its beginning.
pub(super) struct ControlFile {
    pub(super) file: Arc<File>,
    block: SegmentRef<ControlBlock>,
    pub(super) pes: u32,
}

impl ControlFile {
    /// Creates the file for `pes` processes, which may use this many processors.
    ///
    /// # Errors
    /// When there are no processes or too many, or the system provides no memory.
    pub(super) fn create(pes: u32, processors: u32, binding: Binding) -> io::Result<Self> {
        if pes == 0 || pes as usize > MOST_PROCESSES {
            let text = format!("a job has from 1 to {MOST_PROCESSES} processes, not {pes}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let refused = |call, bytes| {
            move |error: io::Error| {
                let reason = MemoryError::of(call, control::OBJECT, bytes, &error);
                io::Error::new(error.kind(), reason)
            }
        };
        let file = Arc::new(system::memory_file().map_err(refused("memfd_create", 0))?);
        let bytes = control::BYTES;
        system::extend(&file, bytes as u64).map_err(refused("ftruncate", bytes))?;
        let block = Self::map(&file).map_err(io::Error::other)?;
        block.pes.store(pes, Relaxed);
        block.processors.store(processors, Relaxed);
        block.binding.store(binding.word(), Relaxed);
        block.end.store(bytes as u64, Relaxed);
        block.seal();
        Ok(Self { file, block, pes })
    }

    /// Opens the file that another process has created; `None` if that has another version of
    /// this crate.
    ///
    /// # Errors
    /// When the system does not map the file.
    pub(super) fn open(file: File) -> Result<Option<Self>, Box<MemoryError>> {
        let file = Arc::new(file);
        let block = Self::map(&file)?;
        let pes = block.pes.load(Relaxed);
        let is_sound = block.is_sealed() && (1..=MOST_PROCESSES).contains(&(pes as usize));
        Ok(is_sound.then_some(Self { file, block, pes }))
    }

    fn map(file: &Arc<File>) -> Result<SegmentRef<ControlBlock>, Box<MemoryError>> {
        let segment = Segment::map(file, 0, control::BYTES, control::OBJECT, None)?;
        Ok(SegmentRef::new(&Arc::new(segment), 0))
    }

    /// Returns the processes, in the order of their ranks.
    pub(super) fn processes(&self) -> &[ProcessSlot] {
        &self.block.processes[..self.pes as usize]
    }

    /// Records how the process of a PE has ended. Fails the launches that need it, and wakes all
    /// that wait in them. Returns whether there are any.
    pub(super) fn lose(&self, rank: Rank, end: ProcessEnd) -> bool {
        let Some(process) = self.processes().get(rank.index()) else { return false };
        process.lose(end);
        let mut is_missed = false;
        for (number, launch) in self.present() {
            if let Some(reason) = process.is_missed(number) {
                is_missed = true;
                self.fail(launch, rank, reason);
            }
        }
        is_missed
    }

    /// Fails a launch because a process has ended, and wakes the PEs.
    fn fail(&self, launch: &LaunchSlot, rank: Rank, reason: String) {
        let Some(segment) = self.beginning(launch) else { return };
        let header = SegmentRef::<Header>::new(&segment, 0);
        let (states, _) = layout::states(self.pes as usize);
        let states = SegmentSlice::<PeState>::new(&segment, states, self.pes as usize);
        let is_first = header.poison.claim(&reason::encode(&Failure::Pe { rank, reason }));
        // A process that has ended copies nothing any more.
        states[rank.index()].access_flags.iter().for_each(AccessFlag::forget);
        if is_first {
            states.iter().for_each(|state| state.parker.wake(Scope::Machine));
        }
    }

    /// Returns why a launch has failed, if one has.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.present().find_map(|(_, launch)| {
            let segment = self.beginning(launch)?;
            let words = SegmentRef::<Header>::new(&segment, 0).poison.reason()?;
            reason::decode(&words)
        })
    }

    /// Returns the beginning of a launch's segment, with the states of the job and of its PEs.
    fn beginning(&self, launch: &LaunchSlot) -> Option<Arc<Segment>> {
        let at = usize::try_from(launch.at.load(Relaxed)).ok()?;
        let (_, bytes) = layout::states(self.pes as usize);
        Segment::map(&self.file, at, bytes, control::OBJECT, None).ok().map(Arc::new)
    }

    /// Returns the first PE whose process has ended too early for launch `number`, and why.
    pub(super) fn missed(&self, number: u32) -> Option<(Rank, String)> {
        (0..)
            .map(Rank)
            .zip(self.processes())
            .find_map(|(rank, process)| process.is_missed(number).map(|reason| (rank, reason)))
    }

    /// Returns whether the programs of all processes have ended launch `number` successfully.
    pub(super) fn have_all_ended(&self, number: u32) -> bool {
        // Sequentially consistent: of the processes that end at the same time, one sees all ends.
        self.processes().iter().all(|process| process.ended.load(SeqCst) > number)
    }
}

impl Deref for ControlFile {
    type Target = ControlBlock;

    fn deref(&self) -> &ControlBlock {
        &self.block
    }
}
