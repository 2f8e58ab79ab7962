//! `run --hosts`: the arguments for the `mpirun` in `PATH`, which is a script that prints them.

use std::os::unix::fs::PermissionsExt as _;

use super::*;
use consort_sandbox::commands::says;

/// The version texts of launchers.
const OPEN_MPI: &str = "mpirun (Open MPI) 4.1.4";
const MPICH: &str = "HYDRA build details:";
const INTEL: &str = "Intel(R) MPI Library for Linux* OS, Version 2021.18";

/// Returns a folder with an `mpirun` that prints this version, with this status, or its arguments.
fn mpi(version: &str, status: u8) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("mpirun");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && {{ echo '{version}'; exit {status}; }}\n\
         echo \"$@\"; exit 7\n"
    );
    fs::write(&program, script).expect("a file");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a program");
    folder
}

/// Returns the output of `run` on either stream, with this folder as its `PATH`.
fn output_of(folder: &Path, options: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    let mut consort = Command::new(env!("CARGO_BIN_EXE_consort"));
    let is_known = |name: &str| name.contains("CONSORT_") || name.starts_with("SHMEM_");
    let ours = std::env::vars_os().filter(|(name, _)| is_known(&name.to_string_lossy()));
    for (name, _) in ours {
        consort.env_remove(name);
    }
    consort.arg("run").args(options.split_whitespace()).args(["./program", "-x", "a b"]);
    consort.env("PATH", folder).envs(variables.iter().copied()).current_dir(folder);
    let output = consort.stdin(Stdio::null()).output().expect("a launcher");
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn each_mpi_has_its_own_options() {
    const EVERY: &str = "-n 4 --hosts a,b --pes-per-process 2 --placement in-turn --tag-output \
                         -x LETTERS=x -x PATH --allow-run-as-root";
    for (version, plain, every) in [
        (
            OPEN_MPI,
            "--host a:2,b:2 --map-by slot:oversubscribe --bind-to none -x CONSORT_CACHE \
             -x SHMEM_SYMMETRIC_SIZE -n 4",
            "--host a:1,b:1 --map-by node:oversubscribe --bind-to none --tag-output \
             --allow-run-as-root -x CONSORT_CACHE -x CONSORT_PES_PER_PROCESS=2 \
             -x CONSORT_PLACEMENT=in-turn -x LETTERS=x -x PATH -x SHMEM_SYMMETRIC_SIZE -n 2",
        ),
        (
            MPICH,
            "-hosts a,b -ppn 2 -n 4",
            "-hosts a,b -ppn 1 -prepend-rank -genv CONSORT_PES_PER_PROCESS 2 \
             -genv CONSORT_PLACEMENT in-turn -genv LETTERS x -n 2",
        ),
        (
            INTEL,
            "-hosts a,b -ppn 2 -n 4",
            "-hosts a,b -ppn 1 -prepend-rank -genv CONSORT_PES_PER_PROCESS 2 \
             -genv CONSORT_PLACEMENT in-turn -genv LETTERS x -n 2",
        ),
    ] {
        let folder = mpi(version, 0);
        fs::write(folder.path().join("nodes"), "a slots=2\nb:2 # both\n").expect("a file");
        let known = [("CONSORT_CACHE", "/c"), ("SHMEM_SYMMETRIC_SIZE", "1M"), ("SHELL_", "")];
        let list = "-np 4 --hosts a,b";
        for (options, words) in [
            (list, plain),
            ("-H a,b -np 4", plain),
            ("--host a,b -np 4", plain),
            ("--hostfile nodes -n 4 --oversubscribe", plain),
            ("--machinefile nodes -np 4", plain),
            (EVERY, every),
        ] {
            let said = output_of(folder.path(), options, &known);
            assert_eq!(said, (Some(7), format!("{words} ./program -x a b\n")), "{options}");
        }
        let dry = output_of(folder.path(), &format!("{list} --dry-run"), &known);
        assert_eq!(dry, (Some(0), format!("mpirun {plain} ./program -x 'a b'\n")));
    }
}

/// The environment supplies settings that options do not.
#[test]
fn the_shape_may_be_in_the_environment() {
    let folder = mpi(MPICH, 0);
    let variables = [("CONSORT_PES_PER_PROCESS", "2"), ("CONSORT_PLACEMENT", "in-turn")];
    for (options, words) in [
        ("-n 8 --hosts a,b", "-hosts a,b -ppn 1 -n 4"),
        (
            "-n 8 --hosts a,b --placement blocks",
            "-hosts a,b -ppn 2 -genv CONSORT_PLACEMENT blocks -n 4",
        ),
        (
            "-n 8 --hosts a,b --pes-per-process 4",
            "-hosts a,b -ppn 1 -genv CONSORT_PES_PER_PROCESS 4 -n 2",
        ),
    ] {
        let said = output_of(folder.path(), options, &variables);
        assert_eq!(said, (Some(7), format!("{words} ./program -x a b\n")), "{options}");
    }
    let said = output_of(folder.path(), "-n 8 --hosts a,b", &[("CONSORT_PES_PER_PROCESS", "two")]);
    assert_eq!((said.0, said.1.lines().count()), (Some(1), 1), "{}", said.1);
    assert!(said.1.contains("CONSORT_PES_PER_PROCESS: invalid number of PEs `two`"), "{}", said.1);
}

#[test]
fn hosts_without_processes_get_a_warning() {
    let folder = mpi(MPICH, 0);
    let (status, text) = output_of(folder.path(), "-n 4 --hosts a,b,c --dry-run", &[]);
    assert!(status == Some(0) && text.contains("mpirun -hosts a,b -ppn 2 -n 4 "), "{text}");
    assert!(says(&text, "warning: of 3 hosts 1 has no process (c)"), "{text}");
    let (_, text) =
        output_of(folder.path(), "-n 4 --hosts a,b,c --placement in-turn --dry-run", &[]);
    assert!(!text.contains("warning") && says(&text, "-hosts a,b,c -ppn 1"), "{text}");
}

#[test]
fn conflict_with_hosts_is_a_one_line_error() {
    let folder = mpi(OPEN_MPI, 0);
    fs::write(folder.path().join("empty"), "").expect("a file");
    for (options, part) in [
        ("-n 2 --hosts a --timeout 5", "--timeout: "),
        ("-n 2 --hosts a --grace 5", "--grace: "),
        ("-n 2 --hosts a --bind core", "--bind core: "),
        ("-n 2 --hosts=", "--hosts: invalid host ``"),
        ("-n 2 --hosts a,,b", "--hosts: invalid host ``"),
        ("-n 2 --hostfile empty", "--hostfile empty: no host is named"),
        ("-n 2 --hostfile /dev/null", "--hostfile /dev/null: it cannot be read: it is a device"),
        ("-n 2 --hostfile nodes", "--hostfile nodes: it cannot be read: No such file"),
        ("-n 3 --hosts a,b --pes-per-process 2", "it must be a multiple of 2"),
        ("-n 5 --hosts a:2,b:2", "5 processes on 2 hosts are up to 3 on each, but a has"),
        ("-n 2 --dry-run", "--dry-run: only with --hosts"),
        ("-n 2 --hosts localhost --dry-run", "--dry-run: all hosts are this machine"),
        ("-n 2 --pes-per-process 2", "--pes-per-process: only with --hosts"),
        ("-n 2 --placement blocks", "--placement: only with --hosts"),
    ] {
        let (status, text) = output_of(folder.path(), options, &[]);
        let expected = if options.contains("--hostfile") { 1 } else { 2 };
        assert_eq!((status, text.lines().count()), (Some(expected), 1), "{options}: {text}");
        assert!(says(&text, part), "{options}: {text}");
    }
    let empty = tempfile::tempdir().expect("a folder");
    let broken = mpi("no licence", 3);
    for (folder, part) in [
        (&empty, "no mpirun in PATH: load or install an MPI"),
        (&broken, "mpirun --version failed: no licence"),
    ] {
        let (status, text) = output_of(folder.path(), "-n 2 --hosts a", &[]);
        assert!(status == Some(1) && text.lines().count() == 1 && says(&text, part), "{text}");
    }
}
