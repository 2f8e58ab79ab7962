//! The memory of a job: a segment with what a job begins with.

#![expect(unsafe_code, reason = "maps files in place of parts of the segment")]

use std::{
    fmt,
    fs::File,
    io, process,
    sync::{Arc, atomic::AtomicU64},
};

use consort_fabric::Rank;

use super::{
    config::Config,
    form::{self, Form},
};
use crate::{
    directory::blocks::HeapError,
    segment::{
        backing::{Backing, SharedEnd},
        no_memory::NoMemory,
        origin::Origin,
        page::PAGE,
        part::Single,
        reservation::Segment,
    },
    state::header::Header,
    system::process as system,
};
use consort_machine::{sync::asymmetric, token::ProcessToken};

/// The memory of a job, as one process sees it.
pub struct JobMemory {
    pub(super) config: Config,
    pub(super) form: Form,
    pub(super) segment: Arc<Segment>,
    pub(super) backing: Backing,
}

/// A file in memory, for the job of several processes of a machine.
#[derive(Debug)]
pub struct SharedFile(pub(crate) Arc<File>);

/// Where other processes of the machine find a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileAt {
    /// The process that has made it.
    pub process: u32,
    /// Its number there.
    pub descriptor: u32,
}

impl SharedFile {
    /// A number that this process has in common with those whose files it finds, as far as can be
    /// told. `None` where processes share none.
    #[must_use]
    pub fn place() -> Option<u64> {
        system::place()
    }

    /// An empty file.
    ///
    /// # Errors
    /// When the system has none.
    pub fn new() -> io::Result<Self> {
        system::memory_file().map(|file| Self(Arc::new(file))).map_err(|error| {
            let reason = NoMemory::of("memfd_create", form::SEGMENT, 0, &error);
            io::Error::new(error.kind(), reason)
        })
    }

    /// Where other processes find it.
    #[must_use]
    pub fn at(&self) -> FileAt {
        let descriptor = system::number_of(&self.0).unsigned_abs();
        FileAt { process: process::id(), descriptor }
    }

    /// The file that another process has made.
    ///
    /// # Errors
    /// When the system does not find it, or does not let this process have it.
    pub fn find(at: FileAt) -> io::Result<Self> {
        system::file_of(at.process, at.descriptor).map(|file| Self(Arc::new(file)))
    }
}

impl JobMemory {
    /// Memory of this process alone. `own` is the PE that it is, if it is one alone, as in all
    /// functions below.
    ///
    /// # Errors
    /// When the system provides no memory, as in all functions below.
    pub fn reserve(config: Config, own: Option<Rank>) -> Result<Self, HeapError> {
        let form = Form::of(&config, false)?;
        let refused = |reason| form::refused(&config, reason);
        form.ensure_room(&config, config.pes).map_err(refused)?;
        let placement = form.placement(&config, own);
        let segment =
            Segment::reserve_at(placement, form.parts.bytes, config.memory, form::SEGMENT);
        let segment = Arc::new(segment.map_err(refused)?);
        let backing = Backing::Process(config.memory);
        form.fill(&config, &segment, &backing)?;
        Ok(Self { config, form, segment, backing })
    }

    /// Memory in a file, which is empty before.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn fill(config: Config, file: SharedFile, own: Option<Rank>) -> Result<Self, HeapError> {
        let memory = Self::of_file(config, file, own, |file, bytes| {
            system::extend(file, bytes as u64)
                .map_err(|error| NoMemory::of("ftruncate", form::SEGMENT, bytes, &error))
        })?;
        memory.form.fill(&memory.config, &memory.segment, &memory.backing)?;
        Ok(memory)
    }

    /// The memory that another process has filled a file with, for the same configuration.
    ///
    /// # Errors
    /// As [`Self::reserve`], and when there is nothing in the file.
    pub fn filled(config: Config, file: SharedFile, own: Option<Rank>) -> Result<Self, HeapError> {
        let memory = Self::of_file(config, file, own, |_, _| Ok(()))?;
        memory.form.advise(&memory.config, &memory.segment);
        Ok(memory)
    }

    /// Memory in a file, once `extend` has made that as long as it is to be.
    fn of_file(
        config: Config,
        file: SharedFile,
        own: Option<Rank>,
        extend: impl Fn(&File, usize) -> Result<(), Box<NoMemory>>,
    ) -> Result<Self, HeapError> {
        asymmetric::take_part();
        let config = Config { memory: Origin::Shared, ..config };
        let form = Form::of(&config, true)?;
        let map = || {
            form.ensure_room(&config, 1)?;
            let bytes = form.parts.bytes.next_multiple_of(PAGE);
            extend(&file.0, bytes)?;
            let placement = form.placement(&config, own);
            Segment::map_at(placement, &file.0, 0, bytes, form::SEGMENT, None)
        };
        let segment = Arc::new(map().map_err(|reason| form::refused(&config, reason))?);
        let header = Single::new(&segment, 0);
        let process = ProcessToken::of_caller();
        let backing = Backing::File(Arc::new(JobFile { process, file, header }));
        Ok(Self { config, form, segment, backing })
    }

    /// Lets the static variables of a PE lie in a file instead, which holds them from its beginning
    /// on: this process reaches them there.
    ///
    /// # Errors
    /// When the system does not map them, or they have no room.
    pub fn place_statics(&mut self, pe: Rank, file: &SharedFile) -> io::Result<()> {
        let bytes = usize::try_from(file.0.metadata()?.len()).unwrap_or(usize::MAX);
        if pe.0 >= self.config.pes || bytes > self.config.statics_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let at = self.form.parts.statics_of(pe.index());
        // SAFETY: there is no job yet that would use what lies there.
        unsafe { self.segment.place(at, bytes, &file.0) }
    }
}

/// A file that holds one job. Other processes may still look for it.
struct JobFile {
    process: ProcessToken,
    file: SharedFile,
    header: Single<Header>,
}

impl SharedEnd for JobFile {
    fn is_of_caller(&self) -> bool {
        self.process.is_of_caller()
    }

    fn file(&self) -> &Arc<File> {
        &self.file.0
    }

    fn end(&self) -> &AtomicU64 {
        &self.header.file_end
    }
}

impl fmt::Debug for JobMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobMemory").field("config", &self.config).finish_non_exhaustive()
    }
}
