//! Pipes, devices, folders and endless files in place of each file that the command reads: it
//! rejects them immediately, names them, and neither waits nor fills the memory. If another user
//! could have written a file, the command prints a warning, but uses the file, because it is only
//! data.

use std::{
    fs::{self, File, Permissions},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// Much longer than a rejection takes.
const LIMIT: Duration = Duration::from_secs(60);

/// The commands that read a file, which is named FILE here.
const READERS: [&str; 11] = [
    "wisdom --wisdom FILE show",
    "wisdom --wisdom FILE export",
    "wisdom --wisdom FILE import good.toml",
    "wisdom --wisdom FILE merge good.toml",
    "wisdom import FILE",
    "wisdom merge FILE",
    "explain barrier --wisdom FILE",
    "tune --record FILE",
    "bench barrier --compare FILE",
    "run -n 2 --hostfile FILE true",
    "session FILE",
];

/// Runs the command in a folder. Returns whether it succeeds, and its complaints.
fn run(folder: &Path, line: &str) -> (bool, String) {
    let errors = folder.join("errors");
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args(line.split(' ')).current_dir(folder).env("CONSORT_WISDOM", "good.toml");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut command =
        command.stderr(File::create(&errors).expect("a file")).spawn().expect("it starts");
    let begun = Instant::now();
    while command.try_wait().expect("its status").is_none() {
        if begun.elapsed() > LIMIT {
            command.kill().expect("it ends");
            panic!("{line}: it waits");
        }
        thread::sleep(Duration::from_millis(2));
    }
    let status = command.wait().expect("its status");
    (status.success(), fs::read_to_string(errors).expect("what it wrote"))
}

#[test]
fn endless_files_are_refused_by_all_readers() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let wisdom = consort_tuner::Wisdom::new(consort::tune::Algorithms::here().identity().clone());
    wisdom.save(&at("good.toml")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe.toml")).status().unwrap().success());
    symlink("/dev/zero", at("device.toml")).unwrap();
    fs::create_dir(at("folder.toml")).unwrap();
    // A sparse file of a terabyte takes no space on the disk.
    File::create(at("huge.toml")).unwrap().set_len(1 << 40).unwrap();
    for (file, part) in [
        ("pipe.toml", "it is a named pipe: name a regular file"),
        ("device.toml", "it is a device: name a regular file"),
        ("folder.toml", "it is a directory: name a regular file"),
        ("huge.toml", "it has more than 64 MiB, the limit"),
    ] {
        for reader in READERS {
            let (succeeds, said) = run(folder.path(), &reader.replace("FILE", file));
            assert!(!succeeds, "{reader}: {said}");
            assert!(said.contains(file), "{reader}: `{file}` in {said}");
            assert!(said.contains(part), "{reader}: `{part}` in {said}");
        }
    }
}

#[test]
fn data_writable_by_others_is_used_with_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let wisdom = consort_tuner::Wisdom::new(consort::tune::Algorithms::here().identity().clone());
    wisdom.save(&at("good.toml")).unwrap();
    // Recorded calls that cannot be tuned, so that nothing is measured.
    let mut calls = consort_tuner::Mix::default();
    let query = consort::tune::Query {
        collective: consort::tune::Collective::GatherVector,
        sync: consort::sync_modes::SyncModes::MINE,
        pes: 2,
        bytes: 0,
        operator: consort_fabric::OperatorClass::Commutative,
        symmetric: false,
    };
    calls.add(&query, 1);
    calls.append(&at("calls.toml")).unwrap();
    let warning = "another user could have written it";
    for (file, line) in [
        ("good.toml", "explain barrier --wisdom good.toml"),
        ("good.toml", "explain barrier"),
        ("calls.toml", "tune --record calls.toml"),
    ] {
        for (mode, is_warned) in [(0o644, false), (0o666, true)] {
            fs::set_permissions(at(file), Permissions::from_mode(mode)).unwrap();
            let (_, said) = run(folder.path(), line);
            assert_eq!(said.contains(warning), is_warned, "{line}: {said}");
            assert!(!said.contains("not used"), "{line}: {said}");
        }
        fs::set_permissions(at(file), Permissions::from_mode(0o644)).unwrap();
    }
}
