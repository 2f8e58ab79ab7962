//! The memory of a job: a segment with what a job begins with.

#![expect(unsafe_code, reason = "maps files in place of parts of the segment")]

use std::{fmt, fs::File, io, process, sync::Arc};

use consort_fabric::Rank;

use super::{config::Config, form::Form};
use crate::{
    directory::blocks::HeapError,
    segment::{origin::Origin, reservation::Segment},
    sync::asymmetric,
    system::process as system,
};

/// The memory of a job, as one process sees it.
pub struct JobMemory {
    pub(super) config: Config,
    pub(super) form: Form,
    pub(super) segment: Arc<Segment>,
    /// The file that it is in, which other processes may still look for.
    pub(super) file: Option<SharedFile>,
}

/// A file in memory, for the job of several processes of a machine.
#[derive(Debug)]
pub struct SharedFile(pub(crate) File);

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
        system::memory_file().map(Self)
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
        system::file_of(at.process, at.descriptor).map(Self)
    }
}

impl JobMemory {
    /// Memory of this process alone.
    ///
    /// # Errors
    /// When the system provides no memory, as in all functions below.
    pub fn reserve(config: Config) -> Result<Self, HeapError> {
        let form = Form::of(&config, 0)?;
        let memory = config.memory;
        let segment = form.make(&config, &|bytes| Segment::reserve(bytes, memory));
        let segment = segment.ok_or(form.no_memory())?;
        Ok(Self { config, form, segment, file: None })
    }

    /// Memory in a file, which is empty before.
    ///
    /// # Errors
    /// As [`Self::reserve`].
    pub fn fill(config: Config, file: SharedFile) -> Result<Self, HeapError> {
        let config = Config { memory: Origin::Shared, ..config };
        let no_memory = Form::of(&config, 0)?.no_memory();
        let segment = Form::make_staged(&config, &|bytes| {
            system::extend(&file.0, u64::try_from(bytes).ok()?).ok()?;
            Segment::map(&file.0, 0, bytes, None)
        });
        Self::of_file(config, segment.ok_or(no_memory)?, file)
    }

    /// The memory that another process has filled a file with, for the same configuration.
    ///
    /// # Errors
    /// As [`Self::reserve`], and when there is nothing in the file.
    pub fn filled(config: Config, file: SharedFile) -> Result<Self, HeapError> {
        let config = Config { memory: Origin::Shared, ..config };
        let no_memory = Form::of(&config, 0)?.no_memory();
        let bytes = file.0.metadata().map_or(0, |about| about.len());
        let bytes = usize::try_from(bytes).map_err(|_| no_memory)?;
        let segment = Segment::map(&file.0, 0, bytes, None).ok_or(no_memory)?;
        Self::of_file(config, Arc::new(segment), file)
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

    fn of_file(config: Config, segment: Arc<Segment>, file: SharedFile) -> Result<Self, HeapError> {
        asymmetric::take_part();
        let form = Form::found(&config, &segment)?;
        form.advise(&config, &segment);
        Ok(Self { config, form, segment, file: Some(file) })
    }
}

impl fmt::Debug for JobMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobMemory").field("config", &self.config).finish_non_exhaustive()
    }
}
