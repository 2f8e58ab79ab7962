//! Processes that cannot become one job: each gets an error that says why, within a limit.

use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    net::{self, TcpListener, TcpStream},
    os::{
        fd::OwnedFd,
        linux::net::SocketAddrExt as _,
        unix::{
            net::{SocketAddr, UnixStream},
            process::CommandExt as _,
        },
    },
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use consort::{Job, Rank, Rendezvous};
use libtest_mimic::{Failed, Trial};
use rustix::process::geteuid;

use super::running::{
    Ended, INHERITED, LONG, Running, SHORT, all_work, command, new_address, new_name, new_places,
    spawn, start, wait_until_taken,
};

pub(super) fn tests() -> Vec<Trial> {
    vec![
        Trial::test("meeting::sizes_that_differ", sizes_that_differ),
        Trial::test("meeting::rank_twice", rank_twice),
        Trial::test("meeting::rank_beyond_size", rank_beyond_size),
        Trial::test("meeting::process_that_never_joins", process_that_never_joins),
        Trial::test("meeting::two_jobs_at_one_place", two_jobs_at_one_place),
        Trial::test("meeting::names_that_cannot_be", names_that_cannot_be),
        Trial::test("meeting::addresses_that_cannot_be", addresses_that_cannot_be),
        Trial::test("meeting::descriptors_that_cannot_be", descriptors_that_cannot_be),
        Trial::test("meeting::address_of_another_program", address_of_another_program),
        Trial::test("meeting::settings_that_differ", settings_that_differ),
        Trial::test("meeting::two_versions", two_versions),
        Trial::test("meeting::strangers_do_no_harm", strangers_do_no_harm),
        Trial::test("meeting::exchange_that_fails", exchange_that_fails),
        Trial::test("meeting::pes_of_one_process", pes_of_one_process),
        Trial::test("meeting::two_users", two_users),
        Trial::test("meeting::two_namespaces", two_namespaces),
    ]
}

/// Runs these processes of a job at the same time, which all must fail soon with these words.
fn all_fail(commands: Vec<Command>, words: &[&str]) -> Result<(), Failed> {
    let all: Vec<Running> = commands.into_iter().map(spawn).collect();
    all.into_iter().map(Running::ended).try_for_each(|ended| ended.fails(words))
}

fn sizes_that_differ() -> Result<(), Failed> {
    new_places().iter().try_for_each(|place| {
        let one = command(place, [0, 2], LONG, &["sums"]);
        let other = command(place, [1, 3], LONG, &["sums"]);
        all_fail(vec![one, other], &["job of 2 PEs", "one of 3", "give all the same size"])
    })
}

fn rank_twice() -> Result<(), Failed> {
    new_places().iter().try_for_each(|place| {
        let of = |rank| command(place, [rank, 3], LONG, &["sums"]);
        let words = ["both want to be PE 1"];
        // If the other two were first, they would be gone when this one comes.
        let first = spawn(of(0));
        wait_until_taken(place);
        all_fail(vec![of(1), of(1)], &words)?;
        first.ended().fails(&words)
    })
}

fn rank_beyond_size() -> Result<(), Failed> {
    let of = |numbers| vec![command(&new_name(), numbers, LONG, &["sums"])];
    all_fail(of([3, 3]), &["PE 3 is not in the team"])?;
    all_fail(of([0, 0]), &["at least one PE"])?;
    all_fail(of([0, 5000]), &["5000 PEs are too many"])?;
    all_fail(vec![command(&new_name(), [0, 1], LONG, &["pool"])], &["Job::threads"])
}

fn process_that_never_joins() -> Result<(), Failed> {
    new_places().iter().try_for_each(|place| {
        let of = |rank| command(place, [rank, 4], SHORT, &["sums"]);
        all_fail(vec![of(1), of(3)], &["PEs 0 and 2 did not join the job", "within 500ms", place])
    })
}

fn two_jobs_at_one_place() -> Result<(), Failed> {
    new_places().iter().try_for_each(|place| two_jobs_at(place))
}

fn two_jobs_at(place: &str) -> Result<(), Failed> {
    let mut first: Vec<Running> =
        (0..2).map(|rank| start(place, [rank, 2], LONG, &["waits"])).collect();
    first.iter_mut().for_each(|one| one.prints(b'w'));
    let of = |rank| command(place, [rank, 2], SHORT, &["sums"]);
    let in_use = ["in use for 500ms by a job that is complete"];
    all_fail(vec![of(0), of(1)], &in_use)?;
    // A job that may wait longer gets the name when the first one ends.
    let later: Vec<Running> = (0..2).map(|rank| start(place, [rank, 2], LONG, &["sums"])).collect();
    thread::sleep(Duration::from_millis(50));
    first.iter_mut().for_each(|one| drop(one.stdin()));
    let first: Vec<Ended> = first.into_iter().map(Running::ended).collect();
    all_work(&first, "")?;
    let later: Vec<Ended> = later.into_iter().map(Running::ended).collect();
    all_work(&later, "sum 1")
}

fn names_that_cannot_be() -> Result<(), Failed> {
    for name in [String::new(), "x".repeat(91), "a\0b".to_owned()] {
        let ended = Job::processes(Rank(0), 1, Rendezvous::name(name)).run(|_| Ok(()));
        let error = ended.expect_err("no such name").to_string();
        if !error.contains("of a job: use 1 to 90 bytes") {
            return Err(error.into());
        }
    }
    let name = "x".repeat(90);
    Ok(Job::processes(Rank(0), 1, Rendezvous::name(name)).run(|_| Ok(())).map(drop)?)
}

fn addresses_that_cannot_be() -> Result<(), Failed> {
    for (address, words) in [
        ("", "invalid address ``"),
        ("127.0.0.1", "use HOST:PORT"),
        ("127.0.0.1:0", "all processes need the same port"),
        ("127.0.0.1:65536", "use HOST:PORT"),
        // For documentation, so no machine has it.
        ("192.0.2.1:29500", "is not one of this machine"),
    ] {
        let ended = Job::processes(Rank(0), 1, Rendezvous::address(address)).run(|_| Ok(()));
        let error = ended.expect_err("no such address").to_string();
        if !error.contains(words) || !error.contains(address) {
            return Err(format!("{address}: {error}").into());
        }
    }
    Ok(())
}

fn descriptors_that_cannot_be() -> Result<(), Failed> {
    for descriptor in [-1, 1_000_000] {
        let job = Job::processes(Rank(0), 1, Rendezvous::descriptor(descriptor));
        let error = job.run(|_| Ok(())).expect_err("no such file").to_string();
        if !error.contains(&format!("descriptor {descriptor} is not open in this process")) {
            return Err(error.into());
        }
    }
    let of = |rank, pes| command(INHERITED, [rank, pes], SHORT, &["sums"]);
    let mut device = of(0, 1);
    device.stdin(Stdio::null());
    all_fail(vec![device], &["descriptor 0 is a terminal, another device"])?;
    // Each has another pipe as its input.
    all_fail(vec![of(0, 2)], &["PE 1 did not join", "the file of descriptor 0", "within 500ms"])?;
    all_fail(vec![of(1, 2)], &["PE 0 did not join"])
}

/// A program that does not reply, and one that says something else.
fn address_of_another_program() -> Result<(), Failed> {
    for says in [&b""[..], b"HTTP/1.1 400 Bad Request\r\n\r\n", &[1], &[2, 255, 255, 255, 255]] {
        let address = new_address();
        let listener = TcpListener::bind(&address)?;
        let all = [0, 1].map(|rank| command(&address, [rank, 2], SHORT, &["sums"]));
        thread::spawn(move || {
            let mut taken = Vec::new();
            while let Ok((mut stream, _)) = listener.accept() {
                let _ = stream.write_all(says); // the process may have gone
                taken.push(stream);
            }
        });
        all_fail(all.into(), &[])?;
    }
    Ok(())
}

fn settings_that_differ() -> Result<(), Failed> {
    let name = new_name();
    let of = |rank, bytes: &str| command(&name, [rank, 2], LONG, &["heap", bytes]);
    let words = ["bytes of the heap must be the same", "PE 0 has 65536, and PE 1 has 131072"];
    all_fail(vec![of(0, "65536"), of(1, "131072")], &words)
}

/// Returns the first bytes that a process of another version sends: its rank, and the size of its
/// job.
fn foreign_greeting([rank, pes]: [u32; 2]) -> Vec<u8> {
    let mut greeting = b"consort1".to_vec();
    greeting.extend(7_u64.to_le_bytes());
    let mut version = b"9.8.7".to_vec();
    version.resize(24, 0);
    greeting.extend(version);
    greeting.extend([rank, pes, 4321].iter().flat_map(|number| number.to_le_bytes()));
    greeting
}

/// Connects to the process that has the place of a job.
fn connect(place: &str) -> fs::File {
    wait_until_taken(place);
    let connected = if place.parse::<net::SocketAddr>().is_ok() {
        TcpStream::connect(place).map(OwnedFd::from)
    } else {
        SocketAddr::from_abstract_name(format!("consort/{place}"))
            .and_then(|address| UnixStream::connect_addr(&address))
            .map(OwnedFd::from)
    };
    connected.expect("it listens").into()
}

fn send(stream: &mut fs::File, frame: &[u8]) -> io::Result<()> {
    stream.write_all(&u32::try_from(frame.len()).expect("a short frame").to_le_bytes())?;
    stream.write_all(frame)
}

fn two_versions() -> Result<(), Failed> {
    let name = new_name();
    let first = start(&name, [0, 2], LONG, &["sums"]);
    let mut other = connect(&name);
    send(&mut other, &foreign_greeting([1, 2]))?;
    let mut reply = Vec::new();
    other.read_to_end(&mut reply)?;
    let words = "PE 1 (process 4321) has 9.8.7: build all with the same version";
    first.ended().fails(&[words])?;
    match String::from_utf8_lossy(&reply).contains(words) {
        true => Ok(()),
        false => Err(format!("{reply:?}").into()),
    }
}

/// Connections from outside the job do not disturb it.
fn strangers_do_no_harm() -> Result<(), Failed> {
    new_places().iter().try_for_each(|place| disturb(place))
}

fn disturb(place: &str) -> Result<(), Failed> {
    let first = start(place, [0, 2], LONG, &["sums"]);
    let _silent = connect(place);
    drop(connect(place));
    send(&mut connect(place), b"who are you?")?;
    connect(place).write_all(&[255; 64])?;
    send(&mut connect(place), &foreign_greeting([1, 2])[..20])?;
    let second = start(place, [1, 2], LONG, &["sums"]);
    all_work(&[first.ended(), second.ended()], "sum 1")
}

/// Returns the error of a job of two processes that exchange bytes in this way.
fn error_of(
    exchange: impl FnMut(&[u8]) -> Result<Vec<Vec<u8>>, &'static str> + Send + 'static,
) -> String {
    let job = Job::processes(Rank(0), 2, Rendezvous::all_gather(exchange));
    job.run(|_| Ok(())).expect_err("they do not meet").to_string()
}

fn exchange_that_fails() -> Result<(), Failed> {
    let errors = [
        (error_of(|_| Err("no network")), "the processes of the job did not meet: no network"),
        (error_of(|own| Ok(vec![own.to_vec()])), "returned the bytes of 1 processes"),
        (error_of(|_| Ok(vec![b"something".to_vec(); 2])), "bytes that no process of the job"),
        (error_of(|own| Ok(vec![own.to_vec(); 2])), "wants to be PE 0 and PE 0"),
    ];
    match errors.iter().find(|(error, words)| !error.contains(words)) {
        None => Ok(()),
        Some(other) => Err(format!("{other:?}").into()),
    }
}

/// Threads that act as processes are refused: each PE must be a process.
fn pes_of_one_process() -> Result<(), Failed> {
    let name = new_name();
    let run = |rank| {
        let job = Job::processes(Rank(rank), 2, Rendezvous::name(&*name).timeout(LONG));
        job.run(|_| Ok(())).expect_err("it is one process").to_string()
    };
    let errors = thread::scope(|scope| {
        [0, 1].map(|rank| scope.spawn(move || run(rank))).map(|thread| thread.join())
    });
    let all = errors.iter().flatten();
    match all.filter(|error| error.contains("use Job::threads")).count() {
        2 => Ok(()),
        _ => Err(format!("{errors:?}").into()),
    }
}

/// The number of a user that no process needs to be.
const NOBODY: u32 = 65_534;

/// Returns whether this test can start processes of another user, and enter another namespace.
fn can_be_others() -> bool {
    let is_well = |command: &mut Command| {
        command.stdout(Stdio::null()).stderr(Stdio::null());
        geteuid().is_root() && command.status().is_ok_and(|status| status.success())
    };
    let can = env::current_exe()
        .is_ok_and(|own| is_well(Command::new(own).arg("--list").uid(NOBODY)))
        && is_well(Command::new("unshare").args(["-p", "-T", "-f", "true"]));
    if !can {
        println!("skipped: only root may start processes of other users and namespaces");
    }
    can
}

fn two_users() -> Result<(), Failed> {
    if !can_be_others() {
        return Ok(());
    }
    for (foreign, place) in [0, 1].into_iter().zip([new_places(), new_places()]) {
        place.iter().try_for_each(|place| {
            let of = |rank: u32| {
                let mut command = command(place, [rank, 2], SHORT, &["sums"]);
                if rank == foreign {
                    command.uid(NOBODY);
                }
                spawn(command)
            };
            let first = of(0);
            wait_until_taken(place);
            of(1).ended().fails(&[
                place,
                "is in use by ",
                "only processes of one user share memory",
            ])?;
            first.ended().fails(&["PE 1 did not join the job", "within 500ms"])
        })?;
    }
    Ok(())
}

fn two_namespaces() -> Result<(), Failed> {
    if !can_be_others() {
        return Ok(());
    }
    for (option, words) in [
        ("-p", "cannot be in one job, because each has another PID namespace"),
        ("-T", "cannot be in one job, because each has another time namespace"),
    ] {
        let name = new_name();
        let first = start(&name, [0, 2], LONG, &["sums"]);
        let inner = command(&name, [1, 2], LONG, &["sums"]);
        let mut outer = Command::new("unshare");
        outer.args([option, "-f"]).arg(inner.get_program()).args(inner.get_args());
        outer.stdout(Stdio::piped()).stderr(Stdio::piped());
        spawn(outer).ended().fails(&[words])?;
        first.ended().fails(&[words])?;
    }
    Ok(())
}
