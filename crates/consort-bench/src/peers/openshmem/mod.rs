//! OpenSHMEM: this project's library, next to the library whose `oshcc` and `oshrun` are in `PATH`.
//!
//! One C program is compiled for both libraries, and launched with them in turn. It prints the
//! times of routines, and of loads and stores in the peer's memory. The comment at its top defines
//! these times. Another program, which does nothing, is launched with 8 PEs. A launch measures the
//! transfer at its beginning and at its end. If both have the same class, that is the class of the
//! launch. Only launches of the same class are compared. If a library's program fails, its output
//! before the failure is still shown, with the reason.

use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use consort_fabric::statistics::Summary;
use consort_tuner::TransferClass;

use super::commands::{CompiledProgram, PATIENCE, ended, find_program, output};
use crate::{
    harness::{Figure, Mode},
    page::Page,
    units::{in_a_line, time},
};

const PROGRAM: &str = include_str!("openshmem_bench.c");
const HELLO: &str = include_str!("hello.c");
/// The number of PEs of a launch that does nothing.
const HELLO_PES: u32 = 8;
const LIMIT: Duration = Duration::from_secs(200);
/// Seconds for each kind of work in a launch.
const WORK_SECONDS: &str = "0.01";
/// The works whose times are those of a transfer, at the beginning and at the end.
const TRANSFER: &str = "raw, one line";
const TRANSFER_AGAIN: &str = "raw, one line, again";
/// The last line that a program prints.
const DONE: &str = "done";
const STARTUP: &str = "launch of 8 PEs";

/// The output of a launch's programs: the time of each kind of work.
struct LaunchOutput(BTreeMap<String, f64>);

impl LaunchOutput {
    /// Returns the class of its transfers; `None` if it changed during the launch.
    fn class(&self) -> Option<TransferClass> {
        let class = |work: &str| self.0.get(work).map(|&ns| TransferClass::of(ns));
        class(TRANSFER).filter(|_| class(TRANSFER) == class(TRANSFER_AGAIN))
    }
}

/// A library: the way to compile and start programs, and its programs.
struct Library {
    name: String,
    launcher: PathBuf,
    options: Vec<&'static str>,
    program: CompiledProgram,
    hello: CompiledProgram,
    launches: Vec<LaunchOutput>,
    /// The number of failures of its programs, and the reason of the last one.
    failed: (usize, String),
}

impl Library {
    /// Returns this project's library, by its command.
    fn own(consort: &Path, stop: &AtomicBool) -> Result<Self> {
        let compiler = || {
            let mut compiler = Command::new(consort);
            compiler.arg("cc");
            compiler
        };
        Self::new("Consort".to_owned(), consort, vec!["run"], compiler, stop)
    }

    /// Returns the other library, from `PATH`.
    fn other(stop: &AtomicBool) -> Result<Self> {
        let find = |name: &str| {
            let found = find_program(Path::new(name));
            found.with_context(|| format!("no {name} in PATH (on Debian: openmpi-bin)"))
        };
        let (launcher, oshcc) = (find("oshrun")?, find("oshcc")?);
        let version = output(Command::new(&launcher).arg("--version"), PATIENCE, stop)?;
        // For example, `oshrun (OpenRTE) 4.1.4`.
        let version = version.lines().next().unwrap_or_default();
        let is_open_mpi = version.contains("Open MPI") || version.contains("OpenRTE");
        let number = version.split_whitespace().last().unwrap_or_default();
        let (name, options) = if is_open_mpi {
            (format!("Open MPI {number}"), vec!["--allow-run-as-root", "--oversubscribe"])
        } else {
            (version.to_owned(), Vec::new())
        };
        Self::new(name, &launcher, options, || Command::new(&oshcc), stop)
    }

    fn new(
        name: String,
        launcher: &Path,
        options: Vec<&'static str>,
        compiler: impl Fn() -> Command,
        stop: &AtomicBool,
    ) -> Result<Self> {
        Ok(Self {
            name,
            launcher: launcher.to_owned(),
            options,
            program: CompiledProgram::new(compiler().arg("-O2"), PROGRAM, stop)?,
            hello: CompiledProgram::new(&mut compiler(), HELLO, stop)?,
            launches: Vec::new(),
            failed: (0, String::new()),
        })
    }

    /// Launches both programs once.
    fn launch(&mut self, stop: &AtomicBool) -> Result<()> {
        let printed = self.run(2, &self.program.path.clone(), &[WORK_SECONDS], stop)?;
        ensure!(
            printed.lines().any(|line| line == DONE),
            "the program of {} ended early: {}",
            self.name,
            self.failed.1
        );
        let mut times: BTreeMap<String, f64> = times(&printed).collect();
        let begun = Instant::now();
        self.run(HELLO_PES, &self.hello.path.clone(), &[], stop)?;
        let ns = begun.elapsed().as_secs_f64() * 1e9;
        times.insert(STARTUP.to_owned(), ns);
        self.launches.push(LaunchOutput(times));
        Ok(())
    }

    /// Runs a program, and returns what it prints, even if it fails.
    fn run(
        &mut self,
        pes: u32,
        program: &Path,
        arguments: &[&str],
        stop: &AtomicBool,
    ) -> Result<String> {
        let mut command = Command::new(&self.launcher);
        command.args(&self.options).args(["-n", &pes.to_string()]).arg(program).args(arguments);
        // Open MPI does not start without a home directory, which containers may lack.
        if env::var_os("HOME").is_none() {
            command.env("HOME", env::temp_dir());
        }
        let ended = ended(&mut command, LIMIT, stop)?;
        if let Some(why) = ended.failure {
            // The status, and the first line of the message.
            let why = why.to_string();
            let why: Vec<&str> = why.lines().take(2).collect();
            self.failed = (self.failed.0 + 1, why.join(" "));
        }
        Ok(ended.printed)
    }

    /// Returns the times of a kind of work, in the launches of a class; in all launches if
    /// transfers do not matter.
    fn times(&self, work: &str, class: Option<TransferClass>) -> Option<Summary> {
        let is_of = |launch: &&LaunchOutput| work == STARTUP || launch.class() == class;
        let times = self.launches.iter().filter(is_of).filter_map(|launch| launch.0.get(work));
        let times: Vec<f64> = times.copied().collect();
        (!times.is_empty()).then(|| Summary::of(&times))
    }

    fn median(&self, work: &str, class: Option<TransferClass>) -> Option<f64> {
        self.times(work, class).map(|times| times.median)
    }

    fn launches_of(&self, class: Option<TransferClass>) -> usize {
        self.launches.iter().filter(|launch| launch.class() == class).count()
    }
}

/// Returns the kinds of work that a program has printed, with their times.
fn times(printed: &str) -> impl Iterator<Item = (String, f64)> {
    printed.lines().filter_map(|line| {
        let (ns, name) = line.strip_prefix("time ")?.split_once(' ')?;
        Some((name.to_owned(), ns.parse().ok()?))
    })
}

/// The results.
pub struct OpenShmem {
    own: Library,
    other: Result<Library, String>,
    /// The kinds of work, in program order.
    works: Vec<String>,
}

/// Measures for about the budget, until `stop` is set, with the programs of this `consort` command,
/// and with the other library if `peer` is set.
///
/// # Errors
/// If this project's programs do not compile or run.
pub fn measure(
    consort: &Path,
    peer: bool,
    budget: Duration,
    stop: &AtomicBool,
) -> Result<OpenShmem> {
    let begun = Instant::now();
    let mut own = Library::own(consort, stop)?;
    let none = || Err("not requested".to_owned());
    let find = || Library::other(stop).map_err(|error| in_a_line(&error));
    let mut other = if peer { find() } else { none() };
    // Relaxed: the flag publishes no other data.
    while own.launches.is_empty() || (begun.elapsed() < budget && !stop.load(Relaxed)) {
        own.launch(stop)?;
        if let Ok(library) = &mut other
            && let Err(error) = library.launch(stop)
        {
            other = Err(in_a_line(&error));
        }
    }
    let mut works: Vec<String> = PROGRAM
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("{\"")?.split_once('"'))
        .map(|(name, _)| name.to_owned())
        .filter(|name| name != TRANSFER_AGAIN)
        .collect();
    works.push(STARTUP.to_owned());
    Ok(OpenShmem { own, other, works })
}

impl OpenShmem {
    /// Returns the classes of this project's launches; only `None` if no launch has a class.
    fn classes(&self) -> Vec<Option<TransferClass>> {
        let classes = [TransferClass::Near, TransferClass::Far].map(Some);
        let found: Vec<_> =
            classes.into_iter().filter(|&class| self.own.launches_of(class) > 0).collect();
        if found.is_empty() { vec![None] } else { found }
    }

    /// Returns a figure for each kind of work, class and library.
    #[must_use]
    pub fn figures(&self) -> Vec<Figure> {
        let classes = self.classes();
        let of = |library: &Library, peer: Option<String>, work: &str, class| {
            let times = library.times(work, class)?;
            let pes = if work == STARTUP { HELLO_PES } else { 2 };
            let transfer = library.median(TRANSFER, class).filter(|_| work != STARTUP);
            let figure = Figure {
                fabric: "processes".into(),
                algorithm: Some(work.to_owned()),
                peer,
                ratio_to_limit: transfer.map(|transfer| times.median / transfer),
                c2c_ns: transfer,
                c2c_class: class.filter(|_| work != STARTUP),
                launches: Some(library.launches_of(class)),
                ..Figure::of("openshmem", pes, Mode::Throughput)
            };
            Some(figure.with(&times))
        };
        let of_work = |(work, class): (&String, Option<TransferClass>)| {
            let other = self.other.as_ref().ok();
            let other = other.and_then(|other| of(other, Some(other.name.clone()), work, class));
            [of(&self.own, None, work, class), other].into_iter().flatten()
        };
        let all =
            classes.iter().flat_map(|&class| self.works.iter().map(move |work| (work, class)));
        // Work without a class appears once.
        all.filter(|&(work, class)| work != STARTUP || class == classes[0])
            .flat_map(of_work)
            .collect()
    }

    /// Adds the table to a page.
    pub fn show(&self, page: &mut Page) {
        let other = self.other.as_ref();
        for class in self.classes() {
            self.show_class(class, page);
        }
        page.paragraph(
            "ping-pongs: one way; raw: loads and stores of C in the same memory; ratio: the other \
             library's time over Consort's",
        );
        match other {
            Err(why) => page.paragraph(format!("no other library: {why}")),
            Ok(Library { failed: (0, _), .. }) => {}
            Ok(Library { failed: (count, why), name, launches, .. }) => page.paragraph(format!(
                "{name}: {count} of {} programs failed after their last line: {why}",
                2 * launches.len()
            )),
        }
    }

    fn show_class(&self, class: Option<TransferClass>, page: &mut Page) {
        let other = self.other.as_ref().ok();
        let all = [Some(&self.own), other].into_iter().flatten();
        let launches: Vec<String> = all
            .map(|library| {
                let (of_class, all) = (library.launches_of(class), library.launches.len());
                format!("{of_class} of {all}")
            })
            .collect();
        let class_name =
            class.map_or_else(|| "of several classes".to_owned(), |class| class.to_string());
        page.paragraph(format!(
            "2 PEs that are processes, transfers {class_name}; medians of {} launches, in turn",
            launches.join(" and ")
        ));
        let row = |work: &String| {
            let own = self.own.median(work, class);
            let their = other.and_then(|other| other.median(work, class));
            let transfer = self.own.median(TRANSFER, class).filter(|_| work != STARTUP);
            let cell = |ns: Option<f64>| ns.map_or_else(|| "-".to_owned(), time);
            let ratio = |a: Option<f64>, b: Option<f64>| {
                let ratio = a.zip(b).map(|(a, b)| format!("{:.2}", a / b));
                ratio.unwrap_or_else(|| "-".to_owned())
            };
            vec![work.clone(), cell(own), ratio(own, transfer), cell(their), ratio(their, own)]
        };
        let name = other.map_or("other", |other| other.name.as_str());
        let header = vec!["routine", "Consort", "transfers", name, "ratio"];
        page.table(header, self.works.iter().map(row).collect(), 1..5);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_other_lines_skipped() {
        let printed = "a warning\ntime 80.25 put, fence, flag, 8 B\ntime x\ndone\n";
        let read: Vec<_> = times(printed).collect();
        assert_eq!(read, [("put, fence, flag, 8 B".to_owned(), 80.25)]);
    }

    #[test]
    fn launch_has_no_class_if_it_changes() {
        let launch = |begin: f64, end: f64| {
            let printed = format!("time {begin} {TRANSFER}\ntime {end} {TRANSFER_AGAIN}\n");
            LaunchOutput(times(&printed).collect()).class()
        };
        assert_eq!(launch(50.0, 60.0), Some(TransferClass::Near));
        assert_eq!(launch(210.0, 190.0), Some(TransferClass::Far));
        assert_eq!(launch(50.0, 200.0), None);
        assert_eq!(LaunchOutput(BTreeMap::new()).class(), None);
    }
}
