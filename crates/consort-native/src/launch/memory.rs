//! The memory of a job: a segment with the initial contents of a job.

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
    form::{self, SegmentForm},
};
use crate::{
    directory::blocks::HeapError,
    segment::{
        backing::{Backing, GrowableFile},
        memory_error::MemoryError,
        origin::Origin,
        page::PAGE,
        reservation::Segment,
        slice::SegmentRef,
    },
    state::header::Header,
    system::process as system,
};
use consort_machine::{sync::asymmetric, token::ProcessToken};

/// The name of static variables in errors.
pub(crate) const STATICS: &str = "the program's static variables";

/// The memory of a job, as one process sees it.
pub struct JobMemory {
    pub(super) config: Config,
    pub(super) form: SegmentForm,
    pub(super) segment: Arc<Segment>,
    pub(super) backing: Backing,
}

/// A file in memory that holds the job of several processes of a machine.
#[derive(Debug)]
pub struct SharedFile(pub(crate) Arc<File>);

/// The place where other processes of the machine find a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLocation {
    /// The process that made the file.
    pub process: u32,
    /// The file's descriptor in that process.
    pub descriptor: u32,
}

impl SharedFile {
    /// Returns a number that is equal in processes that can find each other's files, as far as this
    /// process can tell. `None` if processes cannot share files.
    #[must_use]
    pub fn host_key() -> Option<u64> {
        system::host_key()
    }

    /// Creates an empty file.
    ///
    /// # Errors
    /// When the system does not create one.
    pub fn new() -> io::Result<Self> {
        system::memory_file().map(|file| Self(Arc::new(file))).map_err(|error| {
            let reason = MemoryError::of("memfd_create", form::SEGMENT, 0, &error);
            io::Error::new(error.kind(), reason)
        })
    }

    /// Returns the place where other processes find the file.
    #[must_use]
    pub fn at(&self) -> FileLocation {
        let descriptor = system::number_of(&self.0).unsigned_abs();
        FileLocation { process: process::id(), descriptor }
    }

    /// Opens the file that another process made.
    ///
    /// # Errors
    /// When the file does not exist, or the system does not let this process open it.
    pub fn find(at: FileLocation) -> io::Result<Self> {
        system::file_of(at.process, at.descriptor).map(|file| Self(Arc::new(file)))
    }
}

impl JobMemory {
    /// Reserves memory that only this process uses. `own` is this process's PE, if it has only one;
    /// likewise in all functions below.
    ///
    /// # Errors
    /// When the system provides no memory; likewise in all functions below.
    pub fn reserve(config: Config, own: Option<Rank>) -> Result<Self, HeapError> {
        if !config.senders_fence() {
            asymmetric::prepare();
        }
        let form = SegmentForm::of(&config, false)?;
        let refused = |reason| form::refused(&config, reason);
        form.ensure_room(&config, config.pes).map_err(refused)?;
        let placement = form.placement(&config, own);
        let segment =
            Segment::reserve_at(placement, form.layout.bytes, config.memory, form::SEGMENT);
        let segment = Arc::new(segment.map_err(refused)?);
        let backing = Backing::Process(config.memory);
        form.fill(&config, &segment, &backing)?;
        Ok(Self { config, form, segment, backing })
    }

    /// Fills an empty file with the memory of a job.
    ///
    /// # Errors
    /// Same as [`Self::reserve`].
    pub fn create(config: Config, file: SharedFile, own: Option<Rank>) -> Result<Self, HeapError> {
        let memory = Self::of_file(config, file, own, |file, bytes| {
            system::extend(file, bytes as u64)
                .map_err(|error| MemoryError::of("ftruncate", form::SEGMENT, bytes, &error))
        })?;
        memory.form.fill(&memory.config, &memory.segment, &memory.backing)?;
        Ok(memory)
    }

    /// Maps the memory that another process has filled a file with, for the same configuration.
    ///
    /// # Errors
    /// Same as [`Self::reserve`], and when the file is empty.
    pub fn map(config: Config, file: SharedFile, own: Option<Rank>) -> Result<Self, HeapError> {
        let memory = Self::of_file(config, file, own, |_, _| Ok(()))?;
        memory.form.advise(&memory.config, &memory.segment);
        Ok(memory)
    }

    /// Maps memory in a file, after `extend` has made the file long enough.
    fn of_file(
        config: Config,
        file: SharedFile,
        own: Option<Rank>,
        extend: impl Fn(&File, usize) -> Result<(), Box<MemoryError>>,
    ) -> Result<Self, HeapError> {
        asymmetric::take_part();
        let config = Config { memory: Origin::Shared, ..config };
        let form = SegmentForm::of(&config, true)?;
        let map = || {
            form.ensure_room(&config, 1)?;
            let bytes = form.layout.bytes.next_multiple_of(PAGE);
            extend(&file.0, bytes)?;
            let placement = form.placement(&config, own);
            Segment::map_at(placement, &file.0, 0, bytes, form::SEGMENT, None)
        };
        let segment = Arc::new(map().map_err(|reason| form::refused(&config, reason))?);
        let header = SegmentRef::new(&segment, 0);
        let process = ProcessToken::current();
        let backing = Backing::File(Arc::new(JobFile { process, file, header }));
        Ok(Self { config, form, segment, backing })
    }

    /// Maps the static variables of a PE from the beginning of a file instead, so that this process
    /// accesses them there.
    ///
    /// # Errors
    /// When the system does not map them, or they do not fit.
    pub fn place_statics(&mut self, pe: Rank, file: &SharedFile) -> io::Result<()> {
        let bytes = usize::try_from(file.0.metadata()?.len()).unwrap_or(usize::MAX);
        if pe.0 >= self.config.pes || bytes > self.config.statics_bytes {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let at = self.form.layout.statics_of(pe.index());
        // SAFETY: no job exists yet that could use these pages.
        unsafe { self.segment.place(at, bytes, &file.0) }
    }
}

/// A file that holds one job. Other processes may still open it.
struct JobFile {
    process: ProcessToken,
    file: SharedFile,
    header: SegmentRef<Header>,
}

impl GrowableFile for JobFile {
    fn is_current(&self) -> bool {
        self.process.is_current()
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
