//! Starts jobs of this program, and checks their outcomes.

use std::{
    env,
    process::{Child, Command, ExitCode, Stdio},
    time::{Duration, Instant},
};

use consort_launch::{Binding, Launch};
use libtest_mimic::Failed;

/// The time limit of the processes of a failed job: longer than a test waits.
const GRACE: Duration = Duration::from_secs(40);

/// The argument after which a launcher finds the job to start.
const LAUNCH: &str = "launch";

/// The role of this process.
pub(crate) enum Role {
    /// It runs the tests.
    Tests,
    /// It starts the processes of a job: their number, its options, and the program.
    Launcher(Vec<String>),
    /// It is one of these processes, and runs this program.
    Pe(Vec<String>),
}

pub(crate) fn role() -> Role {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.split_first() {
        Some((first, rest)) if first == LAUNCH => Role::Launcher(rest.to_vec()),
        _ if env::var_os("CONSORT_LAUNCH").is_some() => Role::Pe(arguments),
        _ => Role::Tests,
    }
}

/// Starts a job as `consort run` does.
pub(crate) fn launch(arguments: &[String]) -> ExitCode {
    let [pes, grace, program @ ..] = arguments else { panic!("two numbers and a program") };
    let launch = Launch {
        pes: pes.parse().expect("a number of PEs"),
        processors: 2,
        binding: Binding::Placed,
        variables: Vec::new(),
        tags: false,
        timeout: None,
        grace: Duration::from_millis(grace.parse().expect("milliseconds")),
        program: env::current_exe().expect("a program").into(),
        arguments: program.iter().map(Into::into).collect(),
    };
    ExitCode::from(consort_launch::run(&launch).expect("a job"))
}

/// A running job.
pub(crate) struct Job {
    pub(crate) child: Child,
    begun: Instant,
}

/// The outcome of a job.
pub(crate) struct Ended {
    status: Option<i32>,
    text: String,
    pub(crate) took: Duration,
}

/// Starts a job of `pes` processes.
pub(crate) fn start(pes: u32, program: &[&str]) -> Job {
    start_with(pes, GRACE, program)
}

/// Starts a job whose processes are killed this long after the first has failed.
pub(crate) fn start_with(pes: u32, grace: Duration, program: &[&str]) -> Job {
    let mut command = Command::new(env::current_exe().expect("a program"));
    let numbers = [pes.to_string(), grace.as_millis().to_string()];
    command.arg(LAUNCH).args(numbers).args(program);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Job { child: command.spawn().expect("a launcher"), begun: Instant::now() }
}

impl Job {
    /// Waits for the end of the job.
    pub(crate) fn ended(self) -> Ended {
        let output = self.child.wait_with_output().expect("a job");
        let text =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        Ended { status: output.status.code(), text: text.concat(), took: self.begun.elapsed() }
    }
}

impl Ended {
    /// Checks its status and a part of its output.
    pub(crate) fn is(&self, status: i32, part: &str) -> Result<(), Failed> {
        if self.status == Some(status) && self.text.contains(part) {
            return Ok(());
        }
        Err(format!("status {:?} instead of {status}, `{part}`:\n{}", self.status, self.text)
            .into())
    }

    /// Returns the number of output lines that contain this.
    pub(crate) fn lines_with(&self, part: &str) -> usize {
        self.text.lines().filter(|line| line.contains(part)).count()
    }
}
