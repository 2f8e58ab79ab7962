//! Programs that end without `shmem_finalize`, or because a peer has called `shmem_global_exit`.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path, process::Command};

use super::{COMMAND, compile, consort, output, run, text};

/// The warning of an exit without `shmem_finalize`, after the PE.
const WARNING: &str = "it exited without calling shmem_finalize, so the library called it: call \
                       shmem_finalize before the program ends\n";

#[test]
fn exit_without_finalize_ends_well_with_one_warning() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "exits.c", &[]);
    for pes in [1, 2, 3] {
        for (how, first) in [("all", 0), ("twice", 0), ("one", pes - 1)] {
            let done = run(&program, pes, &[how]);
            let said = text(&done);
            assert!(done.status.success(), "{how} on {pes}: {}: {said}", done.status);
            assert_eq!(said, format!("warning: PE {first}: {WARNING}"), "{how} on {pes}");
        }
        let done = run(&program, pes, &["return 3"]);
        let said = text(&done);
        assert_eq!(done.status.code(), Some(3), "{pes}: {said}");
        assert!(said.contains("it exited with status 3"), "{pes}: {said}");
    }
}

/// Two PEs wait for one that begins after the time at which the launcher warns.
#[test]
fn job_waits_for_a_late_pe_and_warns_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "exits.c", &[]);
    let script = "[ \"$CONSORT_RANK\" = 2 ] && sleep 12; exec \"$@\"";
    let program = program.to_string_lossy();
    let done = run(Path::new("sh"), 3, &["-c", script, "sh", &program, "all"]);
    let said = text(&done);
    assert_eq!(done.status.code(), Some(0), "{said}");
    assert_eq!(said.matches("warning: PE 2 has not started").count(), 1, "{said}");
}

/// A PE that ends without `shmem_init` does not keep the others waiting.
#[test]
fn exit_before_initialization_ends_the_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "exits.c", &[]);
    let path = program.to_string_lossy();
    let script = "[ \"$CONSORT_RANK\" = 1 ] && exit 0; exec \"$@\"";
    let by_shell = run(Path::new("sh"), 3, &["-c", script, "sh", &path, "all"]);
    for (done, said) in [
        (by_shell, "PE 1 failed: it exited with status 0 before it called Consort"),
        (run(&program, 3, &["never one"]), "PE 1 called exit without shmem_init"),
        (run(&program, 2, &["never all"]), ""),
    ] {
        let text = text(&done);
        assert_eq!(done.status.code(), Some(i32::from(!said.is_empty())), "{text}");
        assert!(text.contains(said) && text.lines().count() <= 1, "{text}");
    }
}

/// A core file has allocated memory, up to a share of 1 GiB, and none that is only reserved.
#[test]
fn crash_with_core_files_has_its_own_status_and_small_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "exits.c", &[]);
    let mut run = Command::new("sh");
    let script =
        "ulimit -c unlimited 2>/dev/null; exec \"$0\" run --timeout 60 -n 3 \"$1\" crashes";
    run.args(["-c", script, COMMAND]).arg(&program).current_dir(folder.path());
    let done = output(&mut run);
    let said = text(&done);
    assert_eq!(done.status.code(), Some(139), "{said}");
    assert!(said.contains("SIGSEGV"), "{said}");
    // If core files are stored in the working directory of the process.
    for entry in fs::read_dir(folder.path()).expect("a folder").flatten() {
        if entry.file_name().to_string_lossy().starts_with("core") {
            let bytes = entry.metadata().expect("a file").blocks() * 512;
            assert!(bytes < (1 << 30) / 3 + (32 << 20), "{bytes} bytes in {:?}", entry.file_name());
        }
    }
}

#[test]
fn exit_while_peers_wait_ends_the_job() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "exits.c", &[]);
    for what in ["barrier", "word", "lock", "team", "sum"] {
        for pes in [2, 3] {
            let done = run(&program, pes, &[&format!("leaves {what}")]);
            let said = text(&done);
            assert_eq!(done.status.code(), Some(1), "{what} on {pes}: {said}");
            let left = format!("PE {} has called shmem_finalize, or has exited", pes - 1);
            let routine = match what {
                "barrier" => "while others wait in shmem_barrier_all",
                "team" => "while others wait in shmem_team_sync",
                "sum" => "while others wait in shmem_reduce",
                _ => continue,
            };
            assert!(said.contains(&left) && said.contains(routine), "{what} on {pes}: {said}");
            assert!(!said.contains("all_gather"), "{what} on {pes}: {said}");
        }
    }
}

/// Output streams of peers that wait, compute and call the library, or return, are written.
#[test]
fn global_exit_lets_peers_write_their_streams() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "exits.c", &[]);
    for (what, grace) in [("waits", "20"), ("returns", "20"), ("asks", "2"), ("puts", "2")] {
        let kept = folder.path().join(what);
        let kept = kept.to_str().expect("a path of text");
        let mut run = consort();
        run.args(["run", "-n", "3", "--timeout", "60", "--grace", grace]).arg(&program);
        let done = output(run.arg(format!("ended {what}")).arg(kept));
        let said = text(&done);
        assert_eq!(done.status.code(), Some(7), "{what}: {said}");
        assert!(said.ends_with("it called shmem_global_exit(7)\n"), "{what}: {said}");
        for pe in [1, 2] {
            let written = fs::read_to_string(Path::new(&format!("{kept}.{pe}"))).expect("a file");
            assert_eq!(written, "the stream, and the handler", "{what}, PE {pe}");
        }
    }
}
