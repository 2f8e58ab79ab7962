//! Starts processes that are to meet, and checks how they end.

use std::{
    env, fs,
    io::Read as _,
    net::{SocketAddr, SocketAddrV4},
    process::{self, Child, ChildStdin, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use libtest_mimic::Failed;
use rustix::process::{Pid, Signal as Kill, kill_process};

/// The argument after which a process finds its rank, the size of its job, its place, the limit of
/// the rendezvous in milliseconds, and its program. The place is a name, an address, or
/// [`INHERITED`].
pub(super) const MEETS: &str = "meets";

/// The place of the processes with the same standard input.
pub(super) const INHERITED: &str = "inherited";

/// The limit of the rendezvous of processes that all come.
pub(super) const LONG: Duration = Duration::from_secs(60);

/// The limit for those that do not.
pub(super) const SHORT: Duration = Duration::from_millis(500);

/// How long a failure may take to reach all processes, on a busy machine.
pub(super) const SOON: Duration = Duration::from_secs(20);

/// A process that runs.
pub(super) struct Running {
    pub(super) child: Child,
    since: Instant,
}

/// The outcome of a process.
#[derive(Debug)]
pub(super) struct Ended {
    is_well: bool,
    text: String,
    pub(super) took: Duration,
}

/// Returns a name that no other job has.
pub(super) fn new_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("test-{}-{}", process::id(), NEXT.fetch_add(1, Relaxed))
}

/// Returns an address that no other job has: each program has its own of this machine.
pub(super) fn new_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(20_000);
    let [_, high, middle, low] = process::id().to_be_bytes();
    format!("127.{}.{middle}.{low}:{}", high | 64, NEXT.fetch_add(1, Relaxed))
}

/// Returns a new place of each kind to which processes connect.
pub(super) fn new_places() -> [String; 2] {
    [new_name(), new_address()]
}

/// Returns the command of PE `rank` of a job that meets at a place.
pub(super) fn command(
    place: &str,
    [rank, pes]: [u32; 2],
    limit: Duration,
    program: &[&str],
) -> Command {
    let mut command = Command::new(env::current_exe().expect("this program"));
    let limit = limit.as_millis().to_string();
    command.args([MEETS, &rank.to_string(), &pes.to_string(), place, &limit]).args(program);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(super) fn spawn(mut command: Command) -> Running {
    Running { child: command.spawn().expect("a process"), since: Instant::now() }
}

pub(super) fn start(
    place: &str,
    rank_and_size: [u32; 2],
    limit: Duration,
    program: &[&str],
) -> Running {
    spawn(command(place, rank_and_size, limit, program))
}

/// Runs all processes of a job that has a new name.
pub(super) fn start_all(pes: u32, program: &[&str]) -> Vec<Ended> {
    start_all_at(&new_name(), pes, program)
}

/// Runs all processes of a job that meets at a place.
pub(super) fn start_all_at(place: &str, pes: u32, program: &[&str]) -> Vec<Ended> {
    let all: Vec<Running> = (0..pes).map(|rank| start(place, [rank, pes], LONG, program)).collect();
    all.into_iter().map(Running::ended).collect()
}

/// Checks that all succeed and print this.
pub(super) fn all_work(all: &[Ended], part: &str) -> Result<(), Failed> {
    match all.iter().find(|one| !one.is_well || !one.text.contains(part)) {
        None => Ok(()),
        Some(one) => Err(format!("`{part}` is missing: {one:?}").into()),
    }
}

/// Returns whether a process has the place of a job.
pub(super) fn is_taken(place: &str) -> bool {
    if let Ok(SocketAddr::V4(address)) = place.parse() {
        return is_listening(address);
    }
    let sockets = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    sockets.lines().any(|line| line.ends_with(&format!("@consort/{place}")))
}

fn is_listening(address: SocketAddrV4) -> bool {
    let connections = fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let ip = u32::from_ne_bytes(address.ip().octets());
    let listens = format!(" {ip:08X}:{:04X} 00000000:0000 0A ", address.port());
    connections.contains(&listens)
}

pub(super) fn wait_until_taken(place: &str) {
    let begun = Instant::now();
    while !is_taken(place) {
        assert!(begun.elapsed() < SOON, "nobody takes the place");
        thread::sleep(Duration::from_millis(1));
    }
}

impl Running {
    pub(super) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(super) fn kill(&self) {
        kill_process(self.pid(), Kill::KILL).expect("a process that runs or has ended");
    }

    /// Takes the standard input of the process, which ends when this is dropped.
    pub(super) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().expect("nobody has taken it")
    }

    /// Waits until the process prints a letter.
    pub(super) fn prints(&mut self, letter: u8) {
        let mut byte = [0];
        let out = self.child.stdout.as_mut().expect("its output");
        out.read_exact(&mut byte).expect("a letter");
        assert_eq!(byte[0], letter);
    }

    pub(super) fn ended(self) -> Ended {
        let output = self.child.wait_with_output().expect("a process");
        let text =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let took = self.since.elapsed();
        Ended { is_well: output.status.success(), text: text.concat(), took }
    }
}

impl Ended {
    pub(super) fn fails(&self, words: &[&str]) -> Result<(), Failed> {
        let says = words.iter().all(|words| self.text.contains(words));
        if says && !self.is_well && self.took < SOON {
            return Ok(());
        }
        Err(format!("expected an error with {words:?} within {SOON:?}: {self:?}").into())
    }
}
