//! The routines, with 1, 2, 3, 4 and 8 PEs that are processes.
//!
//! This program is the test runner, the launcher that a test starts, and each of the processes.
//! Those of an MPI share memory or are far from each other. On a machine without an MPI, these
//! tests are listed as ignored.

#![expect(
    unsafe_code,
    clippy::multiple_unsafe_ops_per_block,
    clippy::undocumented_unsafe_blocks,
    reason = "calls the C routines on the tests' memory"
)]

use consort_sandbox as _;

mod active_sets;
mod children;
mod collectives;
mod misuse;
mod moving;
mod objects;
mod threads;

use std::{
    env, io,
    process::{Command, ExitCode, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use consort_launch::{Binding, Launch};
use consort_shmem::setup;
use libtest_mimic::{Arguments, Failed, Trial};

const PES: [u32; 5] = [1, 2, 3, 4, 8];

/// The numbers of PEs under an MPI, and which of its processes share memory.
const MPI: [(u32, &str); 4] = [(1, "machine"), (3, "machine"), (2, "process"), (4, "process")];

/// A program of all PEs, and its name.
type Program = (&'static str, fn(Pe));

const PROGRAMS: [Program; 27] = [
    ("puts_and_gets", moving::puts_and_gets),
    ("atomics", moving::atomics),
    ("waits", moving::waits),
    ("computing", moving::computing),
    ("nothing", moving::nothing),
    ("fairness", moving::fairness),
    ("statics", moving::statics),
    ("children", children::children),
    ("memory", objects::memory),
    ("cores", objects::cores),
    ("teams_and_contexts", objects::teams_and_contexts),
    ("many_teams", objects::many_teams),
    ("locks_and_counters", objects::locks_and_counters),
    ("collectives", collectives::collectives),
    ("active_sets", active_sets::active_sets),
    ("debug_active_sets", active_sets::active_sets),
    ("active_sets_by_turns", active_sets::active_sets),
    ("long_broadcasts_of_sets", active_sets::long_broadcasts_of_sets),
    ("long_broadcasts_of_sets_by_turns", active_sets::long_broadcasts_of_sets),
    ("every_active_set", active_sets::every_active_set),
    ("debug_set_of_all_pes", active_sets::all_pes),
    ("collectives_by_turns", collectives::collectives),
    ("collectives_of_some_by_turns", collectives::collectives),
    ("threads", threads::threads),
    ("crossed_threads", threads::crossed_threads),
    ("active_sets_of_threads", threads::active_sets_of_threads),
    ("crossed_active_sets_of_threads", threads::crossed_active_sets_of_threads),
];

/// The PE that runs a program.
#[derive(Clone, Copy, Debug)]
struct Pe {
    own: i32,
    pes: i32,
}

impl Pe {
    /// Returns the number of the PE `distance` after this one, wrapping around.
    fn after(self, distance: i32) -> i32 {
        (self.own + distance).rem_euclid(self.pes)
    }

    /// Returns how many PEs share memory with this one, itself included: all, or only itself.
    fn near(self) -> i32 {
        let are_far = env::var("CONSORT_SHARING").is_ok_and(|sharing| sharing == "process");
        if are_far { 1 } else { self.pes }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [first, pes, program] if first == "launch" => launch(pes, program),
        [first, program] if first == "pe" => run(program),
        _ => tests(),
    }
}

/// The program that starts the PEs of a test.
#[derive(Clone, Copy, Debug)]
enum By {
    Nobody,
    Launcher(u32),
    /// `torchrun`, or Slurm's `srun`, as their variables say.
    Other(u32, &'static str),
    /// An MPI, with the value of `CONSORT_SHARING`: which of its processes share memory.
    Mpi(u32, &'static str),
}

impl By {
    /// Returns the command that runs this program as those PEs.
    fn command(self, program: &str) -> io::Result<Command> {
        let own = env::current_exe()?;
        Ok(match self {
            Self::Nobody => {
                let mut command = Command::new(own);
                command.args(["pe", program]);
                command
            }
            Self::Launcher(pes) => {
                let mut command = Command::new(own);
                command.args(["launch", &pes.to_string(), program]);
                command
            }
            Self::Other(pes, set) => {
                let mut command = Command::new("timeout");
                command.args(["120", "sh", "-c", SCRIPT]).arg(own).args([
                    &pes.to_string(),
                    set,
                    program,
                ]);
                let number = NEXT.fetch_add(1, Relaxed).to_string();
                command.env("MASTER_PORT", std::process::id().to_string());
                command.env("TORCHELASTIC_RESTART_COUNT", &number);
                command.env("SLURM_JOB_ID", std::process::id().to_string());
                command.env("SLURM_STEP_ID", &number).env("SLURM_STEP_NUM_NODES", "1");
                command
            }
            Self::Mpi(pes, sharing) => {
                let mut command = Command::new("timeout");
                command.args(["120", "mpirun"]).args(options_of_mpirun()?);
                command.args(["-n", &pes.to_string()]).arg(own).args(["pe", program]);
                command.env("CONSORT_SHARING", sharing);
                command
            }
        })
    }
}

/// The numbers of PEs of other launchers, and the programs that they run.
const OTHERS: [(u32, &str); 2] = [(2, "srun"), (3, "torchrun")];
const OF_OTHERS: [&str; 6] =
    ["puts_and_gets", "statics", "children", "memory", "locks_and_counters", "collectives"];

/// Starts the processes of a job at the same time, as other launchers do. Ends with the status of
/// one that fails.
const SCRIPT: &str = r#"
all= rank=0 failed=0
while [ $rank -lt $1 ]; do
    case $2 in
    torchrun) env RANK=$rank WORLD_SIZE=$1 LOCAL_WORLD_SIZE=$1 "$0" pe $3 & ;;
    srun) env SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=$1 "$0" pe $3 & ;;
    esac
    all="$all $!" rank=$((rank + 1))
done
for one in $all; do wait $one || failed=$?; done
exit $failed
"#;

/// The number of the next job of another launcher.
static NEXT: AtomicU32 = AtomicU32::new(0);

/// Returns the options for more processes than cores, if the MPI needs any.
fn options_of_mpirun() -> io::Result<&'static [&'static str]> {
    let version = Command::new("mpirun").arg("--version").output()?.stdout;
    let is_open = String::from_utf8_lossy(&version).contains("Open MPI");
    let options: &[_] = &["--allow-run-as-root", "--oversubscribe", "--bind-to", "none"];
    Ok(if is_open { options } else { &[] })
}

fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The warning that PE 0 writes, once, when the heap is full.
const FULL: &str = concat!(
    "warning: PE 0: shmem_malloc returns null: 1152921504606846976 bytes do not fit the symmetric ",
    "heap, where 0 of 4194304 bytes are in use: this machine does not have that much memory, so ",
    "check the size"
);

fn tests() -> ExitCode {
    let has_mpi = ["mpirun", "mpicc"].into_iter().all(is_installed);
    let each = |(name, _): &(&'static str, _)| {
        let name = *name;
        // It also requests more than the heap has.
        let line = if name == "memory" { FULL } else { "" };
        let alone = Trial::test(format!("{name}::alone"), move || ended(By::Nobody, name, 0, line));
        let launched = PES.into_iter().map(move |pes| {
            Trial::test(format!("{name}::{pes}"), move || ended(By::Launcher(pes), name, 0, line))
        });
        let by_mpi = MPI.into_iter().map(move |(pes, sharing)| {
            let by = By::Mpi(pes, sharing);
            let test = move || ended(by, name, 0, line);
            Trial::test(format!("{name}::mpi::{sharing}_{pes}"), test).with_ignored_flag(!has_mpi)
        });
        let by_others = OTHERS.into_iter().map(move |(pes, launcher)| {
            let test = move || ended(By::Other(pes, launcher), name, 0, line);
            Trial::test(format!("{name}::{launcher}_{pes}"), test)
        });
        let by_others = by_others.filter(move |_| OF_OTHERS.contains(&name));
        launched.chain([alone]).chain(by_mpi).chain(by_others)
    };
    let programs = PROGRAMS.iter().flat_map(each);
    let misuses = misuse::ALL.iter().map(|&(name, _, line)| {
        // A set of two of them is not the world.
        let pes = if name.ends_with("of_a_set") { 3 } else { 2 };
        Trial::test(format!("misuse::{name}"), move || ended(By::Launcher(pes), name, 1, line))
    });
    let misuse_of_others = Trial::test("misuse::no_such_pe::srun_2", || {
        let line = "PE 0: shmem_put: argument pe is 2, expected 0 to 1";
        ended(By::Other(2, "srun"), "no_such_pe", 1, line)
    });
    let tests = programs.chain(misuses).chain([misuse_of_others]).collect();
    // Jobs of many processes would slow each other down.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, tests).exit_code()
}

/// Runs a program on PEs, and checks its outcome.
fn ended(by: By, program: &str, status: i32, line: &str) -> Result<(), Failed> {
    let mut command = by.command(program)?;
    let heap = match program {
        "heap_larger_than_memory" => "64T",
        _ if program.ends_with("threads") => "6M",
        "memory" => "4M",
        "cores" => "1.5G",
        _ => "1.5M",
    };
    command.env("SHMEM_SYMMETRIC_SIZE", heap).stdin(Stdio::null());
    command.env("SHMEM_DEBUG", if program.starts_with("debug") { "1" } else { "0" });
    let output = command.output()?;
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    let text = text.concat();
    let lines = if status == 0 { usize::from(!line.is_empty()) } else { usize::MAX };
    let is_quiet = text.lines().count() <= lines;
    if output.status.code() == Some(status) && text.contains(line) && is_quiet {
        return Ok(());
    }
    Err(format!("{:?} instead of {status} and `{line}`:\n{text}", output.status.code()).into())
}

fn launch(pes: &str, program: &str) -> ExitCode {
    let launch = Launch {
        pes: pes.parse().expect("a number of PEs"),
        processors: 2,
        binding: Binding::Placed,
        variables: Vec::new(),
        tags: false,
        timeout: Some(Duration::from_secs(60)),
        grace: Duration::from_secs(1),
        program: env::current_exe().expect("a program").into(),
        arguments: vec!["pe".into(), program.into()],
    };
    ExitCode::from(consort_launch::run(&launch).expect("a job"))
}

fn run(name: &str) -> ExitCode {
    if let Some((_, misuse, _)) = misuse::ALL.iter().find(|(misuse, ..)| *misuse == name) {
        misuse();
        return ExitCode::SUCCESS;
    }
    let (_, program) = PROGRAMS.iter().find(|(known, _)| *known == name).expect("a program");
    // PEs may request different levels.
    let is_multiple = match name {
        "collectives_of_some_by_turns" => std::process::id().is_multiple_of(2),
        _ => name.ends_with("threads") || name.ends_with("by_turns"),
    };
    let level = if is_multiple { setup::THREAD_MULTIPLE } else { setup::THREAD_SINGLE };
    // SAFETY: null, so nothing is written.
    assert_eq!(0, unsafe { setup::init_thread(level, std::ptr::null_mut()) });
    program(Pe { own: setup::my_pe(), pes: setup::n_pes() });
    setup::finalize();
    ExitCode::SUCCESS
}

/// Returns symmetric memory of `len` zeros.
fn zeros<T>(len: usize) -> *mut T {
    let memory = consort_shmem::memory::calloc(len, size_of::<T>());
    assert!(!memory.is_null());
    memory.cast()
}

fn read<T: Copy>(at: *const T, len: usize) -> Vec<T> {
    // SAFETY: the test's own symmetric memory, which no PE changes now.
    (0..len).map(|index| unsafe { at.add(index).read_volatile() }).collect()
}

fn write<T: Copy>(at: *mut T, values: &[T]) {
    for (index, &value) in values.iter().enumerate() {
        // SAFETY: as above.
        unsafe { at.add(index).write_volatile(value) };
    }
}
