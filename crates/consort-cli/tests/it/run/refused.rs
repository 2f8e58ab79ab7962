//! Launchers on a system that refuses a call: a job works, or the error names the call.

use std::{env, os::unix::process::CommandExt as _};

use consort_sandbox::refusals::{OF_LAUNCHERS, refuse};

use super::*;

/// The variable that tells a process of this test which call is refused, and with which error.
const TASK: &str = "TEST_TASK";
const TEST: &str = "run::refused::job_works_or_names_a_refused_call_where_calls_can_be_filtered";

#[test]
fn job_works_or_names_a_refused_call_where_calls_can_be_filtered() {
    if let Ok(task) = env::var(TASK) {
        let (name, error) = task.split_once(' ').expect("a call and an error");
        if let Err(error) = refuse(name, error == "EPERM") {
            return println!("no filter of system calls here: {error}");
        }
        let mut command = command("-n 2", "exit 0");
        command.env_remove(TASK).stdout(Stdio::inherit()).stderr(Stdio::inherit());
        let error = command.exec();
        panic!("no launcher: {error}");
    }
    for (name, _) in OF_LAUNCHERS {
        for (error, said) in [("EPERM", "not permitted"), ("ENOSYS", "not implemented")] {
            let task = format!("{name} {error}");
            let mut program = Command::new("timeout");
            program.arg("20").arg(env::current_exe().expect("this program"));
            program.args([TEST, "--exact", "--nocapture"]).env(TASK, &task);
            let output = program.output().expect("it starts");
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (out, complaint) = (text(&output.stdout), text(&output.stderr));
            if out.contains("no filter") {
                return;
            }
            if output.status.code() != Some(0) {
                let is_named = complaint.contains(name) && complaint.to_lowercase().contains(said);
                assert!(is_named && complaint.lines().count() == 1, "{task}: {output:?}");
            }
            // Without a pidfd the launcher polls for the end of a process.
            assert_eq!(output.status.success(), name == "pidfd_open", "{task}: {output:?}");
        }
    }
}
