//! The options of `run`, of the program that it runs, and of other launchers.

use super::*;
use consort_sandbox::commands::says;

fn consort(words: &[&str], folder: &Path) -> (Option<i32>, String) {
    let mut consort = Command::new(env!("CARGO_BIN_EXE_consort"));
    let output = consort.args(words).current_dir(folder).stdin(Stdio::null()).output();
    let output = output.expect("a launcher");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

fn here(words: &[&str]) -> (Option<i32>, String) {
    consort(words, Path::new("/"))
}

#[test]
fn program_gets_the_arguments_after_it() {
    let echo = ["run", "-n", "1", "/bin/echo", "+"];
    for arguments in [
        &["-n", "3"][..],
        &["--help"],
        &["--version", "-h", "-V"],
        &["--timeout", "5", "-np", "2"],
        &["--", "a"],
        &["a", "--", "-b", "--"],
        &["-"],
    ] {
        let said = here(&[&echo[..], arguments].concat());
        assert_eq!(said, (Some(0), format!("+ {}\n", arguments.join(" "))));
    }
    let said = here(&["run", "-n", "1", "--", "/bin/echo", "-n", "a"]);
    assert_eq!(said, (Some(0), "a".to_owned()));
}

#[test]
fn options_of_other_launchers_are_known() {
    let script = ["sh", "-c", "echo $CONSORT_SIZE $LETTERS-$EMPTY"];
    for options in [
        &["-np", "1"][..],
        &["--np", "1"],
        &["--tag-output", "-np", "1"],
        &["--oversubscribe", "--allow-run-as-root", "-n1", "-x", "PATH"],
        &["-x", "LETTERS=a=b", "-np", "1", "-x", "EMPTY="],
        &["-H", "localhost:4", "-n", "1"],
        &["--host", "localhost,127.0.0.1", "-n", "1"],
    ] {
        let (status, text) = here(&[&["run"][..], options, &script].concat());
        let letters = if options.contains(&"LETTERS=a=b") { "a=b" } else { "" };
        assert_eq!(status, Some(0), "{options:?}: {text}");
        assert!(text.ends_with(&format!("1 {letters}-\n")), "{options:?}: {text}");
    }
    let (status, text) = here(&["run", "--version"]);
    assert!(status == Some(0) && text.starts_with("consort run "), "{text}");
    for wrong in [&["run", "--tag", "-n", "2", "true"][..], &["run", "-n", "2", "-q", "true"]] {
        let (status, text) = here(wrong);
        assert!(status == Some(2) && says(&text, "unexpected argument"), "{text}");
    }
    for (wrong, why) in [
        (["-n", "-1"], "-1 is not in 1..="),
        (["-n", "0"], "0 is not in 1..="),
        (["-x", "=1"], "a variable needs a name: use NAME=VALUE"),
        (["-x", ""], "a variable needs a name: use NAME=VALUE"),
    ] {
        let (status, text) = here(&[&["run"][..], &wrong, &["-n", "1", "true"]].concat());
        assert!(status == Some(2) && says(&text, why), "{wrong:?}: {text}");
    }
}

#[test]
fn a_program_of_this_folder_is_found_by_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("ring"), "#!/bin/sh\n").expect("a file");
    let (status, text) = consort(&["run", "-n", "2", "ring"], folder.path());
    assert_eq!(status, Some(127));
    assert!(says(&text, "cannot start `ring`") && says(&text, "did you mean `./ring`?"));
    assert_eq!(text.lines().count(), 1, "{text}");
    let (_, text) = consort(&["run", "-n", "2", "rings"], folder.path());
    assert!(!says(&text, "did you mean"), "{text}");
}

#[test]
fn help_fits_narrow_terminals() {
    for command in ["run", "cc", "c++", "install"] {
        let (_, text) = here(&[command, "--help"]);
        let (_, examples) = text.split_once("Examples:\n").expect("examples");
        for line in examples.lines() {
            assert!(line.chars().count() <= 78, "{line}");
        }
        let first = format!("  consort {command} ");
        assert!(examples.lines().next().is_some_and(|line| line.starts_with(&first)), "{text}");
    }
    assert!(here(&["run", "--help"]).1.contains("an OpenSHMEM program"));
}

#[test]
fn binding_to_missing_cores_does_nothing() {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let said = here(&["run", "--bind", "core", "-n", &(all + 1).to_string(), "true"]);
    assert!(said.0 == Some(0) && said.1.contains("--bind core does nothing"), "{said:?}");
    let said = here(&["run", "--bind", "core", "-n", "1", "true"]);
    assert_eq!(said, (Some(0), String::new()));
}

#[test]
fn commands_have_room_on_a_small_stack() {
    for limit in ["64", "unlimited"] {
        for words in [
            &["--help"][..],
            &["bench", "--help"],
            &["explain", "barrier", "--pes", "8"],
            &["run", "-n", "2", "sh", "-c", "exit 7"],
        ] {
            let line = format!("ulimit -s {limit} && exec \"$0\" \"$@\"");
            let mut shell = Command::new("sh");
            shell.args(["-c", &line, env!("CARGO_BIN_EXE_consort")]).args(words);
            let output = shell.stdin(Stdio::null()).output().expect("a shell");
            let status = if words[0] == "run" { 7 } else { 0 };
            assert_eq!(output.status.code(), Some(status), "{limit}, {words:?}: {output:?}");
        }
    }
    // Signals reach the command, not the thread that waits for it.
    let line = "ulimit -s 64 && exec \"$0\" run -n 2 sleep 60";
    let mut shell = Command::new("env");
    shell.args(["--default-signal=TERM", "sh", "-c", line, env!("CARGO_BIN_EXE_consort")]);
    let child = shell.stderr(Stdio::piped()).spawn().expect("a shell");
    std::thread::sleep(std::time::Duration::from_millis(700));
    super::signal(child.id(), "TERM");
    let output = child.wait_with_output().expect("it ends");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(143), "{error}");
    assert_eq!(error, "consort run: the job was interrupted by signal 15 (SIGTERM)\n");
}

#[test]
fn ignored_setting_gets_one_warning() {
    let error_of = |name: &str, value: &str| {
        let mut consort = Command::new(env!("CARGO_BIN_EXE_consort"));
        consort.args(["run", "-n", "1", "true"]).env(name, value).stdin(Stdio::null());
        let output = consort.output().expect("a launcher");
        assert!(output.status.success() && output.stdout.is_empty(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert_eq!(error_of("CONSORT_PES_PER_PROCESS", "1"), "");
    for (name, value, part) in [
        ("CONSORT_PES_PER_PROCESS", "4", "CONSORT_PES_PER_PROCESS=4 does nothing here"),
        ("CONSORT_PLACEMENT", "in-turn", "CONSORT_PLACEMENT=in-turn does nothing here"),
        ("CONSORT_PES", "3", "-n 1 is the number of PEs"),
    ] {
        let said = error_of(name, value);
        assert!(said.starts_with("warning: ") && said.lines().count() == 1, "{said}");
        assert!(said.contains(part), "{said}");
    }
}
