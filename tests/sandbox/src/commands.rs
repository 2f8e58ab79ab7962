//! Tests of commands: the words and examples that they print, and how they end when interrupted.

use std::{
    fs,
    path::Path,
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The time from the first interrupt handler to the last.
pub const SOON: Duration = Duration::from_millis(100);
/// The message about an interrupt with results.
pub const SOME: &str = "interrupted: these are the results so far";
/// The message without results.
pub const NOTHING: &str = "interrupted: there are no results yet";
/// Much less than the budgets of interrupted commands, much more than a block takes on a busy
/// machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Returns whether a page contains these words, regardless of line breaks, which depend on the
/// figures before. For sentences, not for table cells: a broken cell's lines are mixed with others.
pub fn says(page: &str, words: &str) -> bool {
    let in_a_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    in_a_line(page).contains(&in_a_line(words))
}

/// Returns the lines of a section of a help text, without their indentation.
pub fn section<'h>(help: &'h str, heading: &str) -> Vec<&'h str> {
    let lines = help.lines().skip_while(|line| *line != heading).skip(1);
    lines.map_while(|line| line.strip_prefix("  ")).collect()
}

/// Returns the names of the commands that a help text lists.
pub fn subcommands(help: &str) -> Vec<&str> {
    // The description of a command may continue in a line with more indentation.
    let names = section(help, "Commands:").into_iter().filter(|line| !line.starts_with(' '));
    let names = names.filter_map(|line| line.split(' ').next()).filter(|name| *name != "help");
    names.collect()
}

/// Returns the help text of a command, by this option, in 80 columns.
fn help_of(program: &str, command: &[&str], option: &str) -> String {
    let mut asked = Command::new(program);
    let output = asked.args(command).arg(option).env("COLUMNS", "80").output();
    let output = output.expect("the command starts");
    assert!(output.status.success(), "{command:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the long help texts of a command and of all its subcommands, each with the words of the
/// command.
///
/// # Panics
/// When a command fails to print its help.
pub fn helps(program: &str, command: &[&str]) -> Vec<(String, String)> {
    let help = help_of(program, command, "--help");
    let names = subcommands(&help).into_iter();
    let below: Vec<_> =
        names.flat_map(|name| helps(program, &[command, &[name]].concat())).collect();
    [(command.join(" "), help)].into_iter().chain(below).collect()
}

/// Returns the examples in the help of a command and of all its subcommands.
///
/// # Panics
/// When a command fails to print its help.
pub fn examples(program: &str, command: &[&str]) -> Vec<String> {
    let of_line = |line: &str| line.split("  ").next().unwrap_or_default().to_owned();
    let of_help = |(_, help): (String, String)| {
        let lines: Vec<_> = section(&help, "Examples:").into_iter().map(of_line).collect();
        lines.into_iter().flat_map(|line| line.split(" && ").map(str::to_owned).collect::<Vec<_>>())
    };
    helps(program, command).into_iter().flat_map(of_help).collect()
}

/// Checks that the short help of a program and of each subcommand fits a screen of 80 x 24.
///
/// # Panics
/// When one does not.
pub fn check_screens(program: &str) {
    for (words, _) in helps(program, &[]) {
        let help = help_of(program, &words.split_whitespace().collect::<Vec<_>>(), "-h");
        // A prompt follows.
        assert!(help.lines().count() < 24, "{words}: {help}");
        assert!(help.lines().all(|line| line.chars().count() <= 80), "{words}: {help}");
    }
}

/// Checks that each command has examples, and that its help fits 80 columns.
///
/// # Panics
/// When one has none, or does not fit.
pub fn check_helps(program: &str, name: &str) {
    for (command, help) in helps(program, &[]) {
        let (_, examples) = help.split_once("\nExamples:\n").unwrap_or_default();
        let long = help.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None, "{name} {command} --help");
        let needs_none = command.contains(' ') || help.contains("\nCommands:\n");
        let begins = format!("  {name} ");
        assert!(needs_none || examples.starts_with(&begins), "{name} {command} --help: {help}");
    }
}

/// Runs a command in a folder, with its wisdom there and no other programs in `PATH`.
///
/// # Panics
/// When it does not start.
pub fn run_in(program: &str, folder: &Path, line: &str) -> Output {
    let mut command = Command::new(program);
    command.args(line.split_whitespace()).current_dir(folder).env("PATH", "");
    command.env("CONSORT_WISDOM", folder.join("wisdom.toml"));
    command.output().expect("the command starts")
}

/// Checks that a command ends with this status, prints nothing, and has these words in its error.
///
/// # Panics
/// When it does not.
#[track_caller]
pub fn ends(program: &str, status: i32, line: &str, advice: &str) {
    let mut command = Command::new(program);
    command.args(line.split_whitespace()).env("CONSORT_WISDOM", "/nowhere/wisdom.toml");
    let output = command.output().expect("the command starts");
    let said = said(&output);
    assert_eq!(output.status.code(), Some(status), "{line}: {said}");
    assert!(said.contains(advice), "{line}: `{advice}` in {said}");
    assert!(output.stdout.is_empty(), "{line}");
}

/// Returns the text that a command has written to standard error.
pub fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the report of a command that succeeds. It must not refer to anything outside.
///
/// # Panics
/// When the command fails, or its report refers to something outside.
pub fn report_of(program: &str, folder: &Path, line: &str) -> String {
    let output = run_in(program, folder, &format!("{line} --report report.html"));
    assert!(output.status.success(), "{line}: {}", said(&output));
    assert!(!output.stdout.is_empty(), "{line}: the text is printed too");
    let html = fs::read_to_string(folder.join("report.html")).expect("a report");
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"), "{line}");
    for outside in ["http:", "https:", "src=", "@import"] {
        assert!(!html.contains(outside), "{line}: {outside}");
    }
    assert_eq!(html.matches("url(").count(), html.matches("url(#").count(), "{line}");
    let command = line.split(' ').next().expect("a command");
    assert!(html.contains(&format!("<span>{command}</span>")), "{line}");
    html
}

/// Interrupts a command.
///
/// # Panics
/// When there is no shell.
pub fn interrupt(child: &Child) {
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
}

/// Waits until a command handles interrupts; from then on it measures.
fn await_handler(child: &Child) {
    let path = format!("/proc/{}/status", child.id());
    let is_handled = || {
        let status = fs::read_to_string(&path).expect("it runs");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask");
        u64::from_str_radix(mask.trim(), 16).expect("a number") & 1 << 1 != 0
    };
    while !is_handled() {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Starts a command, interrupts it after it has run for this time, and returns its output.
///
/// # Panics
/// When the command does not start, or does not end.
pub fn interrupted(command: &mut Command, after: Duration) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the command starts");
    await_handler(&child);
    thread::sleep(after);
    let begun = Instant::now();
    interrupt(&child);
    let output = child.wait_with_output().expect("the command ends");
    assert!(begun.elapsed() < LIMIT, "{command:?}: {:?}", begun.elapsed());
    output
}
