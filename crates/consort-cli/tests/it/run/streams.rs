//! The destinations of a job's output: full, slow, closed, or nonblocking.

use std::{io::Read as _, os::fd::OwnedFd, os::unix::net::UnixStream};

use super::*;

/// Lines of any length, of any bytes, and a last one without an end. The next output is on the same
/// line, unless lines have tags.
#[test]
fn long_lines_of_several_processes_are_whole() {
    const BYTES: usize = 300_000;
    let script = format!(
        "for i in 1 2 3 4; do head -c {BYTES} /dev/zero | tr '\\0' $CONSORT_RANK; echo; done; \
         printf '\\0\\377'$CONSORT_RANK"
    );
    for (options, tag) in [("-n 3", ""), ("-n 3 --tag-output", "[0] ")] {
        let output = command(options, &script).output().expect("a launcher");
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let lines = output.stdout.split(|&byte| byte == b'\n');
        let (mut ends, mut full) = (0, 0);
        for mut line in lines.map(|line| &line[tag.len().min(line.len())..]) {
            while let [0, 0xff, b'0'..=b'2', rest @ ..] = line {
                ends += 1;
                line = rest;
            }
            full += usize::from(line.len() == BYTES);
            assert!(line.iter().all(|byte| *byte == line[0]) && [0, BYTES].contains(&line.len()));
        }
        assert_eq!((ends, full), (3, 3 * 4), "{options}");
        let newlines = if tag.is_empty() { 3 * 4 } else { 3 * 5 - 1 };
        assert_eq!(output.stdout.iter().filter(|&&byte| byte == b'\n').count(), newlines);
    }
}

/// Returns the result of a shell that runs a job with this redirection.
fn redirected(to: &str, script: &str) -> (Option<i32>, String) {
    let line = format!("exec \"$0\" run -n 2 sh -c \"$1\" {to}");
    let mut shell = Command::new("sh");
    let output = shell.args(["-c", &line, env!("CARGO_BIN_EXE_consort"), script]).output();
    let output = output.expect("a shell");
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn status_is_right_without_standard_error() {
    for to in ["2>/dev/full", "2>&-", ">/dev/null 2>&-"] {
        assert_eq!(redirected(to, "echo text >&2; exit 3").0, Some(3), "{to}");
        assert_eq!(redirected(to, "printf text >&2; exit 0").0, Some(0), "{to}");
    }
    let line = "exec \"$0\" run -n 2 /nowhere/program 2>/dev/full";
    let mut shell = Command::new("sh");
    let status = shell.args(["-c", line, env!("CARGO_BIN_EXE_consort")]).status();
    assert_eq!(status.expect("a shell").code(), Some(127));
}

#[test]
fn failed_output_write_is_reported_with_its_reason() {
    let (status, error) = redirected(">/dev/full", "echo text; exec sleep 60");
    assert_eq!(status, Some(1));
    let part = "cannot write the job's output: No space left on device";
    assert!(error.contains(part), "{error}");
}

#[test]
fn nonblocking_output_gets_everything() {
    let (mut reader, writer) = UnixStream::pair().expect("a pair");
    writer.set_nonblocking(true).expect("a setting");
    let mut job = command("-n 2", "seq 1 100000");
    let mut child = job.stdout(Stdio::from(OwnedFd::from(writer))).spawn().expect("a launcher");
    drop(job);
    thread::sleep(Duration::from_millis(500));
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    assert_eq!(text.lines().count(), 200_000);
}

#[test]
fn job_with_unread_output_ends_in_time() {
    let begun = Instant::now();
    let mut child = command("-n 2 --timeout 1", "exec yes").spawn().expect("a launcher");
    assert_eq!(child.wait().expect("it ends").code(), Some(124));
    let mut child = command_with("--default-signal=TERM", "-n 2", "exec yes");
    let mut child = child.spawn().expect("a launcher");
    thread::sleep(Duration::from_millis(700));
    signal(child.id(), "TERM");
    assert_eq!(child.wait().expect("it ends").code(), Some(143));
    // Also if only output is left.
    let mut child = command("-n 2 --timeout 1", "seq 1 20000").spawn().expect("a launcher");
    assert_eq!(child.wait().expect("it ends").code(), Some(124));
    assert!(begun.elapsed() < LIMIT);
}

#[test]
fn slow_reader_gets_all_output_of_an_ended_job() {
    for (script, status) in [("seq 1 50000", 0), ("seq 1 50000; exit 3", 3)] {
        let mut child = command("-n 2", script).spawn().expect("a launcher");
        thread::sleep(Duration::from_millis(1500));
        let mut text = String::new();
        child.stdout.take().expect("a pipe").read_to_string(&mut text).expect("text");
        assert_eq!(text.lines().count(), 100_000);
        assert_eq!(child.wait().expect("it ends").code(), Some(status));
    }
}

/// A process leaves all its output in a pipe that it has enlarged.
#[test]
fn output_in_pipes_at_the_end_is_not_lost() {
    const SOURCE: &str = "#define _GNU_SOURCE\n#include <fcntl.h>\n#include <unistd.h>\n\
        static char text[900000];\nint main(void) {\n\
        for (int i = 0; i < 900000; i++) text[i] = i % 100 == 99 ? '\\n' : 'x';\n\
        if (fcntl(1, F_SETPIPE_SZ, 1 << 20) < 1 << 20) return 77;\n\
        return write(1, text, sizeof text) != sizeof text; }\n";
    let folder = tempfile::tempdir().expect("a folder");
    let (source, program) = (folder.path().join("fills.c"), folder.path().join("fills"));
    fs::write(&source, SOURCE).expect("a file");
    let made = Command::new("cc").arg(&source).arg("-o").arg(&program).status();
    assert!(made.expect("a compiler").success());
    let mut job = Command::new(env!("CARGO_BIN_EXE_consort"));
    let output = job.args(["run", "-n", "1"]).arg(&program).output().expect("a launcher");
    if output.status.code() != Some(77) {
        assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 900_000));
    }
}
