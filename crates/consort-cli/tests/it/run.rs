//! `consort run`: input and output of the processes, signals, the exit status, and that nothing is
//! left behind. The programs are shell scripts that do not use Consort.

mod endings;
mod machines;
mod options;
mod refused;
mod streams;

use std::{
    collections::BTreeSet,
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use consort_sandbox::built;

/// A test that takes longer than this hangs.
const LIMIT: Duration = Duration::from_secs(20);

fn command(options: &str, script: &str) -> Command {
    command_by(Command::new(env!("CARGO_BIN_EXE_consort")), options, script)
}

/// As [`command`], with these options of `env`.
fn command_with(signals: &str, options: &str, script: &str) -> Command {
    let mut by = Command::new("env");
    by.args([signals, env!("CARGO_BIN_EXE_consort")]);
    command_by(by, options, script)
}

fn command_by(mut command: Command, options: &str, script: &str) -> Command {
    command.arg("run").args(options.split_whitespace());
    command.args(["sh", "-c", script]).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn run(options: &str, script: &str) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command(options, script).output().expect("a launcher");
    let [out, error] = [stdout, stderr].map(|text| String::from_utf8(text).expect("text"));
    (status.code(), out, error)
}

/// Returns the processes with this word among their arguments.
fn processes_with(word: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").expect("processes");
    let numbers = all.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let has_word = |number: &u32| {
        let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        words.split(|&byte| byte == 0).any(|argument| argument == word.as_bytes())
    };
    numbers.filter(has_word).collect()
}

fn soon(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LIMIT, "not within {LIMIT:?}: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn signal(process: u32, name: &str) {
    let kill = format!("kill -{name} {process}");
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
}

/// Returns the children of a process.
fn children(of: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("/proc/{of}/task/{of}/children")).unwrap_or_default();
    text.split_whitespace().map(|number| number.parse().expect("a number")).collect()
}

#[test]
fn each_process_knows_its_rank() {
    let (status, out, error) = run("-n 4", "echo $CONSORT_RANK of $CONSORT_SIZE");
    let lines: BTreeSet<&str> = out.lines().collect();
    assert_eq!(lines, BTreeSet::from(["0 of 4", "1 of 4", "2 of 4", "3 of 4"]), "{error}");
    assert_eq!((status, error.as_str()), (Some(0), ""));
}

#[test]
fn lines_are_whole_and_tagged_where_asked_for() {
    let script = "i=0; while [ $i -lt 500 ]; do echo $CONSORT_RANK aaaaaaaaaaaaaaaa $i; \
                  echo $CONSORT_RANK bbbbbbbb $i >&2; i=$((i+1)); done; printf end";
    for (options, tag) in [("-n 3", false), ("-n 3 --tag-output", true)] {
        let (status, out, error) = run(options, script);
        assert_eq!(status, Some(0), "{error}");
        for (text, word, count) in [(out, "aaaaaaaaaaaaaaaa", 1500), (error, "bbbbbbbb", 1500)] {
            let lines = text.lines().filter(|line| line.contains(word));
            assert_eq!(lines.clone().count(), count);
            for line in lines {
                let words: Vec<&str> = line.split(' ').collect();
                let (tagged, rest) =
                    if tag { (Some(words[0]), &words[1..]) } else { (None, &words[..]) };
                assert!(rest.len() == 3 && rest[1] == word, "{line}");
                assert!(tagged.is_none_or(|tag| tag == format!("[{}]", rest[0])), "{line}");
            }
        }
    }
}

/// Nothing is added to the output of the processes. If a process ends in the middle of a line, the
/// next line follows it directly.
#[test]
fn output_is_passed_on_unchanged() {
    let script = "if [ $CONSORT_RANK = 0 ]; then printf end; else sleep 0.6; echo b >&2; \
                  sleep 0.1; echo a; fi";
    let (status, out, error) = run("-n 2", script);
    assert_eq!((status, out.as_str(), error.as_str()), (Some(0), "enda\n", "b\n"));
}

#[test]
fn an_incomplete_line_is_shown_while_its_process_waits() {
    let mut child =
        command("-n 2", "[ $CONSORT_RANK = 1 ] || { printf 'name: '; read x; echo $x; }");
    let mut child = child.stdin(Stdio::piped()).spawn().expect("a launcher");
    thread::sleep(Duration::from_millis(600));
    child.stdin.take().expect("a pipe").write_all(b"somebody\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "name: somebody\n");
}

#[test]
fn pe_0_alone_reads() {
    let mut child = command("-n 3", "echo $CONSORT_RANK $(cat)").stdin(Stdio::piped()).spawn();
    let child_in = child.as_mut().expect("a launcher").stdin.take();
    child_in.expect("a pipe").write_all(b"words").expect("it reads");
    let output = child.expect("a launcher").wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: BTreeSet<&str> = text.lines().map(str::trim).collect();
    assert_eq!(lines, BTreeSet::from(["0 words", "1", "2"]));
}

#[test]
fn status_is_that_of_the_first_failed_pe() {
    let late = "[ $CONSORT_RANK = 1 ] || sleep 0.3; exit $((CONSORT_RANK + 4))";
    let (status, _, error) = run("-n 3", late);
    assert_eq!((status, error.as_str()), (Some(5), "consort run: PE 1 exited with status 5\n"));
    let (status, _, error) = run("-n 2", "[ $CONSORT_RANK = 0 ] || kill -SEGV $$; sleep 0.1");
    assert_eq!(status, Some(139));
    assert_eq!(error, "consort run: PE 1 was killed by signal 11 (SIGSEGV)\n");
}

#[test]
fn pe_that_does_not_end_is_killed() {
    let begun = Instant::now();
    let script = "trap '' TERM; [ $CONSORT_RANK = 0 ] && exit 3; sleep 60; sleep 60";
    let (status, _, error) = run("-n 2", script);
    assert_eq!(status, Some(3), "{error}");
    assert!(error.contains("PE 1 did not end by itself and was killed"), "{error}");
    let (_, _, error) = run("-n 3 --grace 0.2", script);
    assert!(error.contains("PEs 1 and 2 did not end by themselves and were killed"), "{error}");
    assert!(begun.elapsed() < LIMIT);
}

#[test]
fn a_job_ends_when_its_time_is_over() {
    let (status, out, error) = run("-n 3 --timeout 0.3", "echo begun; exec sleep 60");
    assert_eq!((status, out.lines().count()), (Some(124), 3));
    assert!(error.contains("longer than 300ms: PEs 0, 1 and 2 had not ended"), "{error}");
}

#[test]
fn signals_are_passed_on() {
    for (name, status) in [("TERM", 7), ("INT", 7), ("USR1", 7)] {
        let script = format!(
            "trap 'echo signalled; exit 7' {name}; echo ready; while :; do sleep 0.05; done"
        );
        let heard = format!("--default-signal={name}");
        let child = command_with(&heard, "-n 2", &script).spawn().expect("a launcher");
        thread::sleep(Duration::from_millis(500));
        signal(child.id(), name);
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(status), "{name}");
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(text.lines().filter(|line| *line == "signalled").count(), 2, "{name}: {text}");
    }
}

#[test]
fn a_signal_that_is_ignored_is_not_passed_on() {
    let script = "sleep 1; echo done";
    let child = command_with("--ignore-signal=HUP", "-n 2", script).spawn().expect("a launcher");
    thread::sleep(Duration::from_millis(500));
    signal(child.id(), "HUP");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(0), &b"done\ndone\n"[..]));
}

/// Starts a job whose processes start others, and waits until all of them run.
fn tree(mark: &str) -> Child {
    let script = format!("sleep {mark} & setsid sleep {mark} & sleep {mark}; echo never");
    let child = command("-n 3", &script).spawn().expect("a launcher");
    soon("all run", || processes_with(mark).len() == 9);
    child
}

#[test]
fn nothing_is_left_when_a_process_is_killed() {
    let child = tree("98765.01");
    let launcher = children(child.id());
    signal(children(launcher[0])[1], "KILL");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(137));
    soon("all are gone", || processes_with("98765.01").is_empty());
}

#[test]
fn nothing_is_left_when_the_front_is_killed() {
    let mut child = tree("98765.02");
    signal(child.id(), "KILL");
    assert!(child.wait().expect("it ends").code().is_none());
    soon("all are gone", || processes_with("98765.02").is_empty());
}

#[test]
fn nothing_is_left_when_the_launcher_is_killed() {
    let child = tree("98765.03");
    signal(children(child.id())[0], "KILL");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(137));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("the launcher was killed by signal 9 (SIGKILL)"), "{error}");
    soon("all are gone", || processes_with("98765.03").is_empty());
}

#[test]
fn nothing_is_left_when_stdout_closes() {
    let mut child = command("-n 2", "while :; do echo line; done; sleep 98765.04");
    let mut child = child.spawn().expect("a launcher");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("it ends").code(), Some(141));
}

#[test]
fn failed_start_is_a_one_line_error() {
    for (words, status, part) in [
        ("run -n 2 /nowhere/program", 127, "cannot start `/nowhere/program`"),
        ("run -n 2 /etc/passwd", 126, "it may not be executed: `chmod +x` it"),
        ("run -n 0 true", 2, "1..=1024"),
        ("run -n 1025 true", 2, "1..=1024"),
        ("run -n two true", 2, "two"),
        ("run -n 2", 2, "PROGRAM"),
        ("run true", 2, "--pes"),
        ("run -n 2 --timeout soon true", 2, "a number of seconds"),
        ("run -n 2 --timeout -1 true", 2, ""),
        ("run -n 2 --bind somewhere true", 2, "core"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
        let output = command.args(words.split_whitespace()).output().expect("a launcher");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{words}: {error}");
        assert!(error.contains(part), "{words}: {error}");
        assert!(status == 2 || error.lines().count() == 1, "{words}: {error}");
    }
}

/// Processes whose PEs are threads are copies of one program, not a job of several processes.
#[test]
fn copies_of_a_job_get_a_warning() {
    let program = example("joining");
    for (pes, warnings) in [("1", 0), ("3", 1)] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
        let output = command.args(["run", "-n", pes]).arg(&program).output().expect("a launcher");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{error}");
        assert_eq!(error.lines().count(), warnings, "{error}");
        let part = "3 of 3 processes each ran a separate job";
        assert!(warnings == 0 || error.contains(part) && error.contains("`Job::from_env`"));
    }
}

/// Returns an example of the library.
fn example(name: &str) -> PathBuf {
    built(env!("CARGO_BIN_EXE_consort"), &format!("examples/{name}"))
}

/// The program of README.md, alone and as processes.
#[test]
fn the_first_program_runs_as_threads_and_as_processes() {
    let program = example("first");
    let launcher = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
        command.args(["run", "-n", "4"]).arg(&program);
        command
    };
    for mut command in [Command::new(&program), launcher()] {
        let output = command.env("CONSORT_WISDOM", "/nowhere/wisdom.toml").output();
        let output = output.expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{error}");
        let lines: BTreeSet<&str> = text.lines().collect();
        let all = ["PE 0: 6", "PE 1: 6", "PE 2: 6", "PE 3: 6"];
        assert_eq!(lines, BTreeSet::from(all), "{error}");
        // One process prints it for all.
        assert_eq!(error.matches("wisdom is not used: /nowhere/wisdom").count(), 1, "{error}");
    }
    for (variable, value, part) in [
        ("CONSORT_PES", &b"many"[..], "CONSORT_PES is `many`"),
        ("CONSORT_PES", b"4\xff", "CONSORT_PES is `4\u{fffd}`"),
        ("CONSORT_LAUNCH", b"3:0:4", "CONSORT_LAUNCH is `3:0:4`: use the value"),
        ("CONSORT_LAUNCH", b"99:0:4:1", "cannot be mapped"),
        ("CONSORT_LAUNCH", b"0:4:4:1", "CONSORT_LAUNCH is `0:4:4:1`: use the value"),
        ("CONSORT_SEGMENT", b"private\xff", "CONSORT_SEGMENT is `private\u{fffd}`"),
    ] {
        let value = OsStr::from_bytes(value);
        let output = Command::new(&program).env(variable, value).output().expect("it starts");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{error}");
        assert!(error.contains(part) && error.lines().count() == 1, "{error}");
    }
}
