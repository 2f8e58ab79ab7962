//! The messages to the user about unused wisdom: the program runs in a separate process, whose
//! `CONSORT_WISDOM` names the file.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use consort::{Job, tune::Algorithms};
use consort_tuner::Wisdom;

/// The variable that is set in the program's process.
const PLAYS: &str = "TEST_PLAYS";
/// Much longer than the program takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the program with a file, and returns its messages about the file on standard error.
fn said(file: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().expect("a folder");
    let errors = folder.path().join("errors");
    let mut program = Command::new(env::current_exe().expect("this program"));
    program.args(["wisdom::wisdom_that_is_not_used_is_reported_once", "--exact", "--nocapture"]);
    program.env(PLAYS, "yes").env("CONSORT_WISDOM", file);
    program.stderr(fs::File::create(&errors).expect("a file"));
    let mut program = program.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = program.try_wait().expect("its status") {
            break status;
        }
        if begun.elapsed() > LIMIT {
            program.kill().expect("it ends");
            panic!("it waits for {}", file.display());
        }
        thread::sleep(Duration::from_millis(10));
    };
    let errors = fs::read_to_string(errors).expect("what it wrote");
    assert!(status.success(), "{errors}");
    let shown = file.display().to_string();
    errors.lines().filter(|line| line.contains(&shown)).map(str::to_owned).collect()
}

#[test]
fn wisdom_that_is_not_used_is_reported_once() {
    if env::var_os(PLAYS).is_some() {
        // A launch that names the file gets an error. The warning is still printed for the launches
        // that follow.
        let named = env::var_os("CONSORT_WISDOM").expect("the test names a file");
        let _ = Job::threads(2).wisdom(named).run(|_| Ok(()));
        for pes in [2, 3, 2] {
            Job::threads(pes).run(|pe| pe.world().barrier()).expect("a barrier");
        }
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let wisdom = Wisdom::new(Algorithms::here().identity().clone());
    wisdom.save(&file("good")).expect("it is saved");
    let text = wisdom.to_string();
    let here = &Algorithms::here().identity().machine;
    fs::write(file("other"), text.replace(here, "Niagara2")).expect("a file");
    fs::write(file("garbage"), "[wisdom").expect("a file");
    fs::File::create(file("huge")).and_then(|file| file.set_len(1 << 40)).expect("a hole");
    assert!(Command::new("mkfifo").arg(file("pipe")).status().expect("mkfifo").success());
    assert_eq!(said(&file("good")), [""; 0]);
    for (name, part) in [
        ("missing", "does not exist: `consort tune` makes it"),
        ("other", "made on machine `Niagara2`"),
        ("garbage", "move it away and run `consort tune`"),
        ("huge", "more than 64 MiB, the limit"),
        ("pipe", "it is a named pipe: name a regular file"),
    ] {
        let said = said(&file(name));
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("wisdom is not used: ") && said[0].contains(part), "{said:?}");
    }
    // The file is used, although another user may have written it.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("a mode");
    let said = said(&file("good"));
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("another user could have written it"), "{said:?}");
}

#[test]
fn home_that_is_not_a_directory_gets_no_warning() {
    if env::var_os(PLAYS).is_some() {
        Job::threads(2).run(|pe| pe.world().barrier()).expect("a barrier");
        return;
    }
    let mut program = Command::new(env::current_exe().expect("this program"));
    let name = "wisdom::home_that_is_not_a_directory_gets_no_warning";
    program.args([name, "--exact", "--nocapture"]).env(PLAYS, "yes").env("HOME", "/dev/null");
    let output = program.env_remove("XDG_CONFIG_HOME").env_remove("CONSORT_WISDOM").output();
    let output = output.expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("/dev/null"), "{errors}");
}
