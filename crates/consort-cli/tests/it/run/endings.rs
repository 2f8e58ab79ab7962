//! The ends of jobs: by signals and by time-outs, also if a process has moved to another process
//! group.

use std::os::unix::process::CommandExt as _;

use super::*;

/// Runs a job whose launcher gets a signal after a while, and another one later if `signals` is 2.
fn interrupted(name: &str, script: &str, signals: u32) -> (Option<i32>, String) {
    let heard = format!("--default-signal={name}");
    let child = command_with(&heard, "-n 2", script).spawn().expect("a launcher");
    for _ in 0..signals {
        thread::sleep(Duration::from_millis(700));
        signal(child.id(), name);
    }
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), String::from_utf8(output.stderr).expect("text"))
}

#[test]
fn processes_of_other_groups_are_waited_for() {
    for (script, status) in [
        ("exec setsid sh -c 'sleep 0.2; exit 4'", 4),
        ("exec timeout 5 sh -c 'sleep 0.2; exit 6'", 6),
        ("exec setsid true", 0),
    ] {
        let (ended, _, error) = run("-n 2", script);
        assert_eq!(ended, Some(status), "{script}: {error}");
    }
}

#[test]
fn nothing_is_left_of_processes_of_other_groups() {
    let mark = "98765.05";
    let script = format!(
        "[ $CONSORT_RANK = 0 ] && sleep 0.5 && exit 3; setsid setsid sleep {mark} & \
         exec setsid sh -c 'setsid sleep {mark} & exec sleep {mark}'"
    );
    let begun = Instant::now();
    let (status, _, error) = run("-n 3", &script);
    assert_eq!(status, Some(3), "{error}");
    assert!(begun.elapsed() < LIMIT);
    assert!(processes_with(mark).is_empty());
}

#[test]
fn processes_inherit_the_signal_mask_of_the_launcher() {
    for (option, mask) in [("--default-signal=USR1", 0), ("--block-signal=USR1", 0x200)] {
        // Without a shell in between, which might change them.
        let words = ["run", "-n", "2", "grep", "SigBlk", "/proc/self/status"];
        let mut by = Command::new("env");
        let output = by.args([option, env!("CARGO_BIN_EXE_consort")]).args(words).output();
        let text = String::from_utf8(output.expect("a launcher").stdout).expect("text");
        assert_eq!(text, format!("SigBlk:\t{mask:016x}\n").repeat(2), "{option}");
    }
}

#[test]
fn interrupted_job_is_reported() {
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1), ("QUIT", 3)] {
        let begun = Instant::now();
        let (status, error) = interrupted(name, "exec sleep 60", 1);
        assert_eq!(status, Some(128 + number), "{error}");
        let line = format!("consort run: the job was interrupted by signal {number} (SIG{name})\n");
        assert_eq!(error, line);
        assert!(begun.elapsed() < Duration::from_secs(4), "{name}");
    }
}

/// A terminal, `timeout` and many scripts send a signal to a group of processes. Some programs then
/// end with their own status, and those that wait for them fail.
#[test]
fn signal_to_all_blames_no_pe() {
    let of_rank_0 = "trap 'sleep 0.1; exit 1' INT; while :; do sleep 0.05; done";
    for (of_rank_1, status) in [("exec sleep 60", 130), (of_rank_0, 1)] {
        let script = format!("[ $CONSORT_RANK = 1 ] && {{ {of_rank_1}; }}; {of_rank_0}");
        let wrapper = "trap : INT; \"$0\" run -n 2 sh -c \"$1\"; exit $?";
        let mut shell = Command::new("env");
        shell.args(["--default-signal=INT", "sh", "-c", wrapper]);
        shell.args([env!("CARGO_BIN_EXE_consort"), &script]).process_group(0);
        shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = shell.spawn().expect("a shell");
        thread::sleep(Duration::from_millis(700));
        let kill = format!("kill -INT -{}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
        let output = child.wait_with_output().expect("it ends");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{error}");
        assert_eq!(error, "consort run: the job was interrupted by signal 2 (SIGINT)\n");
    }
}

#[test]
fn second_signal_kills_job_that_ignored_the_first() {
    let begun = Instant::now();
    let (status, error) = interrupted("TERM", "trap '' TERM; while :; do sleep 0.1; done", 2);
    assert_eq!(status, Some(143), "{error}");
    let all = "PEs 0 and 1 did not end by themselves and were killed";
    let line = format!("consort run: the job was interrupted by signal 15 (SIGTERM); {all}\n");
    assert_eq!(error, line);
    assert!(begun.elapsed() < Duration::from_secs(5));
}

#[test]
fn pe_killed_by_others_is_not_an_interrupt() {
    let (status, _, error) = run("-n 2", "[ $CONSORT_RANK = 0 ] || kill -TERM $$; sleep 0.1");
    assert_eq!(status, Some(143));
    assert_eq!(error, "consort run: PE 1 was killed by signal 15 (SIGTERM)\n");
}

#[test]
fn time_limits_may_be_huge_or_zero() {
    let (status, _, error) = run("-n 2 --timeout 1e19 --grace 1e19", "exit 0");
    assert_eq!((status, error.as_str()), (Some(0), ""));
    let (status, _, error) = run("-n 2 --grace 1e19", "exit 9");
    assert_eq!(status, Some(9), "{error}");
    let (status, _, error) = run("-n 1 --timeout 0", "exec sleep 60");
    let line = "consort run: the job took longer than 0s: PE 0 had not ended\n";
    assert_eq!((status, error.as_str()), (Some(124), line));
}

#[test]
fn nothing_is_left_when_the_front_is_killed_and_signals_are_ignored() {
    let mark = "98765.06";
    let script = format!("exec sleep {mark}");
    let mut child = command_with("--ignore-signal=TERM", "-n 2", &script).spawn().expect("a job");
    soon("all run", || processes_with(mark).len() == 2);
    let launcher = children(child.id())[0];
    signal(child.id(), "KILL");
    assert!(child.wait().expect("it ends").code().is_none());
    soon("all are gone", || processes_with(mark).is_empty());
    soon("the launcher too", || !Path::new(&format!("/proc/{launcher}/exe")).exists());
}

#[test]
fn nothing_is_left_when_the_launcher_is_stopped() {
    for (mark, name) in [("98765.08", "KILL"), ("98765.09", "TERM")] {
        let script = format!("setsid sleep {mark} & exec sleep {mark}");
        let mut child = command_with("--default-signal=TERM", "-n 2", &script).spawn();
        let child = child.as_mut().expect("a job");
        soon("all run", || processes_with(mark).len() == 4);
        let launcher = children(child.id())[0];
        signal(launcher, "STOP");
        signal(child.id(), name);
        child.wait().expect("it ends");
        soon("all are gone", || processes_with(mark).is_empty());
        soon("the launcher too", || !Path::new(&format!("/proc/{launcher}/exe")).exists());
    }
}

/// Processes that a shell has started before it became the launcher do not belong to the job.
#[test]
fn older_process_is_spared() {
    let mark = "98765.07";
    let script = format!("sleep {mark} >/dev/null 2>&1 & exec \"$0\" run -n 2 true");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script, env!("CARGO_BIN_EXE_consort")]);
    assert!(shell.status().expect("a shell").success());
    let left = processes_with(mark);
    left.iter().for_each(|&process| signal(process, "KILL"));
    assert_eq!(left.len(), 1);
}

#[test]
fn process_cannot_truncate_the_shared_memory() {
    let script = "truncate -s 0 /proc/self/fd/${CONSORT_LAUNCH%%:*} && echo shorter";
    let (status, out, error) = run("-n 1", script);
    assert_eq!((status, out.as_str()), (Some(1), ""), "{error}");
    assert!(error.contains("not permitted"), "{error}");
}

#[test]
fn launcher_raises_its_file_limit_or_names_it() {
    let begin = |limits: &str, pes: u32| {
        let script = format!("{limits} && exec \"$0\" run -n {pes} --bind none sh -c 'ulimit -Sn'");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_consort")]).output().expect("a shell")
    };
    let done = begin("ulimit -Sn 64", 40);
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success() && done.stdout == b"64\n".repeat(40), "{error}");
    let done = begin("ulimit -n 64", 40);
    let error = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(126), "{error}");
    assert!(error.contains("but the limit is 64: raise it"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}
