//! A process that is one of the PEs of a job: a launcher has started it, or it has met the others.

use std::{
    fmt,
    fs::File,
    hash::{DefaultHasher, Hash, Hasher},
    mem, process,
    sync::{
        Arc, Mutex, Once, OnceLock, PoisonError,
        atomic::{
            AtomicU64,
            Ordering::{AcqRel, Acquire, Relaxed, SeqCst},
        },
    },
    thread,
    time::Duration,
};

use consort_fabric::{Rank, environment::variable};

use super::{
    binding::Binding,
    control::{LaunchState, MOST_PROCESSES, ProcessSlot, VARIABLE},
    control_file::ControlFile,
};
use crate::{
    directory::blocks::HeapError,
    launch::{config_error::ConfigError, memory::SharedFile},
    segment::{
        backing::{self, GrowableFile},
        memory_error::MemoryError,
        page::Placement,
        reservation::{OnRelease, Segment},
    },
    system::process as system,
};
use consort_machine::{sync::asymmetric, system::fork::hold_forks, token::ProcessToken};

/// How long a process sleeps between two looks at the control block.
const LOOK: Duration = Duration::from_micros(50);

/// The name of the segment of a launch in errors.
const LAUNCH: &str = "the memory that the PEs of a job share";

/// The values of the launcher's variable that can be used, in errors.
const EXPECTED: &str = "the value that `consort run` sets, or unset it to run the program alone";

/// The reason why a process cannot be one of a launcher's PEs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JoinError {
    /// The launcher's environment variable does not have the form that a launcher gives it.
    Variable(ConfigError),
    /// The launcher's memory does not exist.
    Memory(String),
    /// The launcher has another version.
    Version,
    /// Another process already runs this PE.
    Taken {
        /// The PE.
        rank: Rank,
        /// The process that runs it.
        process: u32,
    },
    /// This process was forked from a PE.
    Forked(Rank),
    /// The processes have begun launches with different configurations.
    Settings(Rank),
    /// Another PE has ended.
    Lost {
        /// The PE.
        rank: Rank,
        /// How its process ended.
        reason: String,
    },
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(error) => fmt::Display::fmt(error, f),
            Self::Memory(text) => write!(
                f,
                "the memory of `consort run` cannot be mapped ({text}): it has ended, or a \
                 program between it and this one has closed the inherited files; unset {VARIABLE} \
                 to run the program alone"
            ),
            Self::Version => f.write_str(
                "`consort run` and this program are of different versions of Consort: \
                 rebuild both",
            ),
            Self::Taken { rank, process } => write!(
                f,
                "PE {rank} is process {process} already: `consort run` starts one \
                 program for each PE"
            ),
            Self::Forked(rank) => write!(
                f,
                "this process was forked from PE {rank} of `consort run`, and is not a PE: launch \
                 a job of threads here (Job::threads)"
            ),
            Self::Settings(rank) => write!(
                f,
                "PE {rank} began a launch with a different configuration from an earlier PE: all \
                 processes must use the same heap size, waiting policy and name"
            ),
            Self::Lost { rank, reason } => write!(f, "PE {rank} failed: {reason}"),
        }
    }
}

impl std::error::Error for JoinError {}

impl From<ConfigError> for JoinError {
    fn from(error: ConfigError) -> Self {
        Self::Variable(error)
    }
}

/// The reason why a process cannot begin a launch.
pub(crate) enum BeginError {
    /// The process cannot take part.
    Join(JoinError),
    /// The system provides no memory.
    Memory(Box<MemoryError>),
    /// The memory contains no job.
    Heap(HeapError),
}

impl From<JoinError> for BeginError {
    fn from(error: JoinError) -> Self {
        Self::Join(error)
    }
}

impl From<Box<MemoryError>> for BeginError {
    fn from(error: Box<MemoryError>) -> Self {
        Self::Memory(error)
    }
}

impl From<HeapError> for BeginError {
    fn from(error: HeapError) -> Self {
        Self::Heap(error)
    }
}

/// A process that is one of the PEs of a job.
pub struct PeProcess {
    control: Arc<ControlFile>,
    rank: Rank,
    process: ProcessToken,
    /// The files with the static variables of PEs, until a launch takes them.
    statics: Mutex<Vec<(Rank, SharedFile)>>,
    /// Dropped when the process leaves the job.
    _on_leave: Option<OnRelease>,
}

/// A launch that a process takes part in.
pub(crate) struct JoinedLaunch {
    pub(crate) member: Arc<PeProcess>,
    number: u32,
}

/// The range of a launch's segment in the file.
struct SegmentRange {
    at: usize,
    bytes: usize,
}

impl PeProcess {
    /// Returns this process as a member of its launcher's job, or `None` if no launcher started it.
    ///
    /// # Errors
    /// When the environment variable or the launcher's memory is invalid, or another process
    /// already runs this PE.
    pub fn here() -> Result<Option<Arc<Self>>, JoinError> {
        static HERE: OnceLock<Result<Option<Arc<PeProcess>>, JoinError>> = OnceLock::new();
        let held = hold_forks();
        let here = HERE.get_or_init(|| {
            let text = variable(VARIABLE).map(|text| text.to_string_lossy().into_owned());
            text.map(|text| Self::of_text(&text).map(Arc::new)).transpose()
        });
        drop(held);
        match here {
            Ok(Some(member)) if !member.process.is_current() => Err(JoinError::Forked(member.rank)),
            here => here.clone(),
        }
    }

    /// Reports to the launcher of this process, if there is one, that the process runs its own PEs.
    /// The launcher warns about that if no process becomes a PE of its job.
    pub fn is_alone() {
        static REPORTED: Once = Once::new();
        let _hold = hold_forks();
        REPORTED.call_once(|| {
            let text = variable(VARIABLE).map(|text| text.to_string_lossy().into_owned());
            // A variable that no launcher has set does not apply to this process.
            if let Some(Ok(own)) = text.map(|text| Self::open(&text)) {
                own.slot().is_alone.store(1, SeqCst);
            }
        });
    }

    /// Leaves it to the launcher to report why this process cannot start, once for all processes
    /// with the same reason. Returns whether it will. There is room for only a few texts.
    #[must_use]
    pub fn report(&self, text: &str) -> bool {
        let number = self.control.reports.number(text);
        if let Some(number) = number {
            self.slot().report.store(number + 1, SeqCst);
        }
        number.is_some()
    }

    fn of_text(text: &str) -> Result<Self, JoinError> {
        let own = Self::open(text)?;
        let pid = &own.slot().pid;
        match pid.compare_exchange(0, process::id(), AcqRel, Acquire) {
            Ok(_) => asymmetric::take_part(),
            Err(before) if before == process::id() => {}
            Err(process) => return Err(JoinError::Taken { rank: own.rank, process }),
        }
        Ok(own)
    }

    /// Returns this process as a PE of the job whose files it has found.
    #[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
    pub(super) fn met(
        control: Arc<ControlFile>,
        rank: Rank,
        statics: Vec<(Rank, SharedFile)>,
        on_leave: OnRelease,
    ) -> Arc<Self> {
        asymmetric::take_part();
        let (process, _on_leave) = (ProcessToken::current(), Some(on_leave));
        let own = Self { control, rank, process, statics: Mutex::new(statics), _on_leave };
        own.slot().pid.store(process::id(), SeqCst);
        Arc::new(own)
    }

    /// Opens the launcher's memory without joining its job.
    fn open(text: &str) -> Result<Self, JoinError> {
        let wrong = || ConfigError::new(VARIABLE, text, EXPECTED);
        let parts: Vec<u32> =
            text.split(':').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let &[number, rank, pes, launcher] = &parts[..] else { return Err(wrong().into()) };
        let most = u32::try_from(MOST_PROCESSES).unwrap_or(u32::MAX);
        let number = i32::try_from(number).map_err(|_| wrong())?;
        if pes > most || rank >= pes {
            return Err(wrong().into());
        }
        let file = system::inherited(number, launcher);
        let control =
            ControlFile::open(file.map_err(|error| JoinError::Memory(error.to_string()))?);
        let control = control.map_err(|error| JoinError::Memory(error.to_string()))?;
        let control = control.ok_or(JoinError::Version)?;
        if control.pes != pes {
            return Err(wrong().into());
        }
        let (control, process) = (Arc::new(control), ProcessToken::current());
        let statics = Mutex::default();
        Ok(Self { control, rank: Rank(rank), process, statics, _on_leave: None })
    }

    /// Takes the files with the static variables of PEs.
    pub(crate) fn take_statics(&self) -> Vec<(Rank, SharedFile)> {
        mem::take(&mut self.statics.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the rank of this process's PE.
    #[must_use]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the number of PEs.
    #[must_use]
    pub fn pes(&self) -> u32 {
        self.control.pes
    }

    /// Returns the number of processors that the launcher may use.
    #[must_use]
    pub fn processors(&self) -> u32 {
        self.control.processors.load(Relaxed).max(1)
    }

    /// Returns the placement of the process.
    #[must_use]
    pub fn binding(&self) -> Binding {
        Binding::of_word(self.control.binding.load(Relaxed))
    }

    /// Begins the process's next launch. Maps the launch's segment of `bytes` bytes (whole pages)
    /// at addresses that fit `placement`. If no other process has made the segment, appends it to
    /// the file and lets `fill` fill it.
    pub(crate) fn begin(
        self: &Arc<Self>,
        settings: &impl Hash,
        bytes: usize,
        placement: Placement,
        fill: impl Fn(&Arc<Segment>, Arc<JoinedLaunch>) -> Result<(), HeapError>,
    ) -> Result<(Arc<Segment>, JoinedLaunch), BeginError> {
        let number = self.slot().begun.fetch_add(1, SeqCst);
        let joined = JoinedLaunch { member: Arc::clone(self), number };
        let launch = self.control.launch(number);
        let mut hasher = DefaultHasher::new();
        settings.hash(&mut hasher);
        let settings = hasher.finish();
        let mut refused = None;
        loop {
            match launch.begin(number, self.pes()) {
                LaunchState::Ready => break,
                LaunchState::Busy => {
                    self.ensure_all_live(number)?;
                    thread::sleep(LOOK);
                }
                LaunchState::Missing => {
                    let made = self.make(&joined, bytes, &fill);
                    // If there is no segment, the others find a size of 0, and the reason.
                    let (at, there) = match &made {
                        Ok(at) => (*at, bytes as u64),
                        Err(BeginError::Memory(reason)) => {
                            (u64::from(reason.code().unsigned_abs()), 0)
                        }
                        Err(_) => (0, 0),
                    };
                    launch.at.store(at, Relaxed);
                    launch.bytes.store(there, Relaxed);
                    launch.settings.store(settings, Relaxed);
                    launch.is_made(number);
                    refused = made.err();
                }
            }
        }
        let size = |word: u64| usize::try_from(word).unwrap_or(usize::MAX);
        let (at, there) = (size(launch.at.load(Relaxed)), size(launch.bytes.load(Relaxed)));
        let agreed = launch.settings.load(Relaxed);
        // A process that cannot take part leaves too, so that a later launch gets the place.
        let range = SegmentRange { at, bytes: there };
        let on_release: OnRelease = Box::new(LeaveGuard { joined: joined.again(), range });
        if let Some(error) = refused {
            return Err(error);
        }
        if agreed != settings {
            return Err(JoinError::Settings(self.rank).into());
        }
        if there == 0 {
            let code = i32::try_from(at).unwrap_or(0);
            return Err(MemoryError::elsewhere(LAUNCH, bytes, code).into());
        }
        let on_release = Some(on_release);
        let segment =
            Segment::map_at(placement, &self.control.file, at, there, LAUNCH, on_release)?;
        Ok((Arc::new(segment), joined))
    }

    /// Makes the segment of a launch. Returns its offset in the file.
    fn make(
        &self,
        joined: &JoinedLaunch,
        bytes: usize,
        fill: &impl Fn(&Arc<Segment>, Arc<JoinedLaunch>) -> Result<(), HeapError>,
    ) -> Result<u64, BeginError> {
        let joined = Arc::new(joined.again());
        let at = backing::append(&*joined, bytes, LAUNCH)?;
        let place = usize::try_from(at).unwrap_or(usize::MAX);
        let segment = Segment::map(&self.control.file, place, bytes, LAUNCH, None)?;
        fill(&Arc::new(segment), joined)?;
        Ok(at)
    }

    /// Fails if a process that launch `number` needs has ended.
    fn ensure_all_live(&self, number: u32) -> Result<(), JoinError> {
        let missed = self.control.missed(number);
        missed.map_or(Ok(()), |(rank, reason)| Err(JoinError::Lost { rank, reason }))
    }

    /// Returns what the processes know of this one.
    fn slot(&self) -> &ProcessSlot {
        &self.control.processes()[self.rank.index()]
    }
}

impl GrowableFile for JoinedLaunch {
    fn is_current(&self) -> bool {
        self.member.process.is_current()
    }

    fn file(&self) -> &Arc<File> {
        &self.member.control.file
    }

    fn end(&self) -> &AtomicU64 {
        &self.member.control.end
    }
}

impl JoinedLaunch {
    pub(crate) fn again(&self) -> Self {
        Self { member: Arc::clone(&self.member), number: self.number }
    }

    /// Returns the file that contains the launch's segment, and the segment's offset.
    #[cfg(all(target_os = "linux", not(any(miri, consort_portable))))]
    pub(crate) fn file(&self) -> (&File, u64) {
        let launch = self.member.control.launch(self.number);
        (&self.member.control.file, launch.at.load(Relaxed))
    }

    /// Returns the first PE whose process has ended too early, and why.
    pub(crate) fn missed(&self) -> Option<(Rank, String)> {
        self.member.control.missed(self.number)
    }

    /// Records that this process's program has ended successfully.
    pub(crate) fn end(&self) {
        self.member.slot().ended.fetch_max(self.number + 1, SeqCst);
    }

    /// Undoes [`Self::end`]. The process must not have left the launch since.
    pub(crate) fn resume(&self) {
        let ended = &self.member.slot().ended;
        // It has not ended if this fails.
        let _ = ended.compare_exchange(self.number + 1, self.number, SeqCst, SeqCst);
    }

    /// Returns whether the programs of all processes have ended successfully.
    pub(crate) fn have_all_ended(&self) -> bool {
        self.member.control.have_all_ended(self.number)
    }
}

/// Counts, on drop, that this process has left a launch. The last one gives the memory back.
struct LeaveGuard {
    joined: JoinedLaunch,
    range: SegmentRange,
}

impl Drop for LeaveGuard {
    fn drop(&mut self) {
        let JoinedLaunch { member, number } = &self.joined;
        if !member.process.is_current() {
            return; // a forked child is not in the launch
        }
        let launch = member.control.launch(*number);
        // If the launch has failed, the launcher may still read the reason.
        let has_failed = !self.joined.have_all_ended();
        if launch.left.fetch_add(1, AcqRel) + 1 == member.pes() && !has_failed {
            let SegmentRange { at, bytes } = self.range;
            system::clear_part(&member.control.file, at as u64, bytes as u64);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(any(miri, loom, consort_portable))))]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::segment::page::PAGE;

    /// Each place serves several launches. A launch that a process cannot begin must not keep it.
    #[test]
    fn launches_that_fail_make_room_for_later_ones() {
        let control = Arc::new(ControlFile::create(2, 1, Binding::default()).expect("a file"));
        let member = |rank| {
            let (control, process) = (Arc::clone(&control), ProcessToken::current());
            let statics = Mutex::default();
            Arc::new(PeProcess { control, rank: Rank(rank), process, statics, _on_leave: None })
        };
        let members = [member(0), member(1)];
        let begin = move |rank: usize, settings: u32, bytes| {
            members[rank].begin(&settings, bytes, Placement::ANY, |_, _| Ok(())).map(drop)
        };
        let program = move || {
            for _ in 0..10 {
                for rank in [0, 1] {
                    let begun = begin(rank, 0, 1 << 50);
                    assert!(matches!(begun, Err(BeginError::Memory(_))), "no system has this much");
                }
            }
            for _ in 0..10 {
                assert!(begin(0, 1, PAGE).is_ok());
                let begun = begin(1, 2, PAGE);
                assert!(matches!(begun, Err(BeginError::Join(JoinError::Settings(Rank(1))))));
            }
        };
        let (sender, end) = mpsc::channel();
        let thread = thread::spawn(move || {
            program();
            sender.send(())
        });
        let ended = end.recv_timeout(Duration::from_secs(20));
        assert_ne!(ended, Err(mpsc::RecvTimeoutError::Timeout), "a launch waits for a place");
        thread.join().expect("no panic").expect("this test receives");
    }
}
