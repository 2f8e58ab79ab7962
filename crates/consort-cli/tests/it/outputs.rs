//! Files and pipes that the command writes: slow or missing readers, a failed write, links, modes,
//! and the exit status.

use std::{
    fs::{self, File, Permissions},
    io::{Read as _, Write as _, pipe},
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

const COMMAND: &str = env!("CARGO_BIN_EXE_consort");
/// Much longer than the command takes.
const LIMIT: Duration = Duration::from_secs(60);
/// A simulation that has written its trace has its other results ready.
const BARRIER: &str = "bench barrier --pes 2 --peers none --budget 0";

fn consort(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(COMMAND);
    command.args(line.split_whitespace()).current_dir(folder).env("PATH", "");
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a shell script in which `consort` is the command.
fn by_shell(folder: &Path, script: &str) -> Output {
    let mut shell = Command::new("sh");
    shell.args(["-c", &script.replace("consort ", &format!("{COMMAND} "))]).current_dir(folder);
    shell.output().expect("a shell")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits for the end of a command, and kills it if it takes too long.
fn ended(mut child: Child) -> Output {
    let begun = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begun.elapsed() > LIMIT {
            child.kill().expect("a child");
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.wait_with_output().expect("its output")
}

/// Starts a benchmark whose CSV goes to a named pipe that nobody reads, and waits until it does.
fn waiting(folder: &Path) -> Child {
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().expect("mkfifo").success());
    let line = format!("{BARRIER} --json=first --csv=pipe");
    let child = consort(folder, &line).spawn().expect("the command starts");
    let begun = Instant::now();
    while fs::read(folder.join("first")).map_or(0, |json| json.len()) == 0 {
        assert!(begun.elapsed() < LIMIT, "no JSON");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(500));
    child
}

#[test]
fn first_signal_ends_the_wait_for_a_reader_of_a_named_pipe() {
    for signal in ["INT", "TERM"] {
        let folder = tempfile::tempdir().expect("a folder");
        let child = waiting(folder.path());
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
        let output = ended(child);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(130), "{signal}: {:?}: {said}", output.status);
        assert!(said.contains("cannot write pipe: interrupted"), "{signal}: {said}");
    }
}

#[test]
fn reader_of_a_named_pipe_may_come_late() {
    let folder = tempfile::tempdir().expect("a folder");
    let child = waiting(folder.path());
    let csv = fs::read_to_string(folder.path().join("pipe")).expect("the results");
    assert!(csv.starts_with("bench,") && csv.ends_with('\n'), "{csv}");
    assert!(ended(child).status.success());
}

/// Another program has set the pipe to nonblocking, and reads slowly.
#[test]
fn output_to_a_pipe_that_does_not_block_is_whole() {
    const FILLER: usize = 48 << 10;
    let folder = tempfile::tempdir().expect("a folder");
    let whole = consort(folder.path(), "completions bash").output().expect("the command").stdout;
    assert!(whole.len() + FILLER > 64 << 10, "the pipe is full");
    let (mut reader, mut writer) = pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("a pipe that does not block");
    writer.write_all(&[b' '; FILLER]).expect("room");
    let mut command = consort(folder.path(), "completions bash");
    let child = command.stdout(writer).spawn().expect("the command starts");
    drop(command);
    thread::sleep(Duration::from_millis(500));
    let mut read = Vec::new();
    reader.read_to_end(&mut read).expect("the output");
    let output = ended(child);
    assert!(output.status.success(), "{}", said(&output));
    assert!(read[FILLER..] == whole, "{} of {} bytes", read.len() - FILLER, whole.len());
}

/// Returns a quick command for each option that writes a file.
fn writes() -> [String; 4] {
    let results = ["--json=file", "--csv=file", "--report file"];
    let [json, csv, report] = results.map(|option| format!("{BARRIER} {option}"));
    ["explain barrier --json=file".to_owned(), json, csv, report]
}

#[test]
fn failed_write_leaves_the_old_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "of before").expect("a file");
    for line in &writes() {
        // The limit allows only empty files.
        let output = by_shell(folder.path(), &format!("ulimit -f 0; exec consort {line}"));
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {:?}: {said}", output.status);
        assert!(said.contains("error: cannot write file: File too large"), "{line}: {said}");
        assert_eq!(fs::read_to_string(&file).expect("a file"), "of before", "{line}");
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "{line}");
    }
}

#[test]
fn written_file_keeps_its_mode_and_links_to_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let [file, link] = ["there", "file"].map(|name| folder.path().join(name));
    symlink("there", &link).expect("a link");
    for line in &writes() {
        // At first the link has no target.
        for mode in [None, Some(0o600), Some(0o666)] {
            let _ = fs::remove_file(&file);
            if let Some(mode) = mode {
                fs::write(&file, "of before").expect("a file");
                fs::set_permissions(&file, Permissions::from_mode(mode)).expect("a mode");
            }
            let output = consort(folder.path(), line).output().expect("the command");
            assert!(output.status.success(), "{line}: {}", said(&output));
            assert!(link.is_symlink(), "{line}");
            let about = fs::metadata(&file).expect("a file");
            assert!(about.len() > 10, "{line}");
            if let Some(mode) = mode {
                assert_eq!(about.permissions().mode() & 0o777, mode, "{line}");
            }
        }
    }
}

/// Standard output may be a pipe, or a file that already has text.
#[test]
fn named_standard_output_is_not_truncated() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["/dev/stdout", "/proc/self/fd/1"] {
        let script = format!("(echo first; consort topo --budget 0 --json={name}) >> out");
        assert!(by_shell(folder.path(), &script).status.success());
        let text = fs::read_to_string(folder.path().join("out")).expect("a file");
        assert!(text.starts_with("first\n{"), "{text}");
        let script = format!("consort topo --budget 0 --json={name} | cat");
        let output = by_shell(folder.path(), &script);
        assert!(output.stdout.starts_with(b"{"), "{}", said(&output));
    }
    fs::write(folder.path().join("kept"), "kept").expect("a file");
    let output = by_shell(folder.path(), "consort topo --budget 0 --json=/dev/fd/3 3> kept");
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::read_to_string(folder.path().join("kept")).expect("a file").starts_with('{'));
}

#[test]
fn unwritable_file_is_an_error_and_not_wrong_usage() {
    let folder = tempfile::tempdir().expect("a folder");
    File::create(folder.path().join("file")).expect("a file");
    for line in
        ["explain barrier --json=/dev/full", "topo --json=file/below", "topo --csv=/", "man file"]
    {
        let output = consort(folder.path(), line).output().expect("the command");
        let said = said(&output);
        assert_eq!(output.status.code(), Some(1), "{line}: {said}");
        assert!(said.starts_with("error: cannot ") && said.lines().count() == 1, "{line}: {said}");
    }
}
