//! The OpenSHMEM programs in C, with each PE a process that the MPI has started: on separate nodes,
//! and on this machine.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use consort_sandbox::built;
use libtest_mimic::Failed;
use tempfile::TempDir;

use super::{LIMIT, Tested, ensure};

const COMMAND: &str = env!("CARGO_BIN_EXE_consort");

/// Programs, compiler options, and the combined output of all PEs.
pub(super) const PROGRAMS: [(&str, &str, &str); 14] = [
    ("rma.c", "-std=c11", ""),
    ("atomics.c", "-std=c11", ""),
    ("waits.c", "-std=c11", ""),
    ("collectives.c", "-std=c11", ""),
    ("sets.c", "-std=c11 -pthread", ""),
    ("memory.c", "-std=c11", ""),
    ("plus.cpp", "-std=c++17", ""),
    ("old.c", "-std=c99 -Wno-deprecated-declarations", ""),
    ("examples.c", "-std=c11", ""),
    ("statics.c", "-pie -fPIE", "statics of {pes} PEs\n"),
    ("statics.c", "-no-pie -fno-pie", "statics of {pes} PEs\n"),
    ("constants.c", "", ""),
    ("constructors.cpp", "", ""),
    ("forks.c", "", ""),
];

/// The number of PEs, and which of their processes share memory.
pub(super) const SHAPES: [(u32, &str); 4] =
    [(1, "machine"), (3, "machine"), (2, "process"), (4, "process")];

/// The end of a program, its status, and a part of the output.
pub(super) const ENDS: [(&str, i32, &str); 15] = [
    ("", 0, ""),
    ("child", 0, ""),
    ("child before", 0, ""),
    ("start_pes", 0, ""),
    ("start_pes, child", 0, ""),
    ("start_pes, misuse", 1, "PE 1: shmem_p: argument pe is 999"),
    ("at exit", 0, ""),
    ("misuse", 1, "PE 1: shmem_p: argument pe is 999"),
    ("exit", 1, "exits before the end of its program"),
    ("start_pes, global 5", 5, ""),
    ("global 5, handler", 5, ""),
    ("thread", 0, ""),
    ("never", 0, ""),
    ("again", 0, ""),
    ("inner", 0, ""),
];

/// The warning of a program that asks for more memory than the machine has.
const TOO_MUCH: &str = "warning: PE 0: shmem_malloc returns null: 1152921504606846976 bytes";

/// Returns the command, if the C library lies next to it.
fn consort() -> Command {
    built(COMMAND, "libconsort_shmem.a");
    Command::new(COMMAND)
}

fn text(Output { stdout, stderr, .. }: &Output) -> String {
    [stdout, stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat()
}

/// Compiles a program with these compiler options.
fn compile(folder: &TempDir, name: &str, options: &str) -> Result<PathBuf, Failed> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/shmem").join(name);
    let program = folder.path().join("program");
    let mut cc = consort();
    cc.arg(if name.ends_with(".cpp") { "c++" } else { "cc" }).arg("-O1");
    cc.args(options.split_whitespace()).arg(source).arg("-o").arg(&program);
    let done = cc.output()?;
    ensure(done.status.success(), &text(&done))?;
    Ok(program)
}

/// Runs a program on this many PEs.
fn run(program: &Path, (pes, sharing): (u32, &str), argument: &str) -> Result<Output, Failed> {
    let mut command = Command::new("timeout");
    command.arg(LIMIT.as_secs().to_string()).arg(COMMAND).args(["run", "--hosts", "localhost"]);
    command.args(["--allow-run-as-root", "--placement", "blocks", "-n", &pes.to_string()]);
    command.arg(program).arg(argument).env("CONSORT_SHARING", sharing);
    // No wisdom, and so no warning about it.
    command.env_remove("CONSORT_WISDOM").env("XDG_CONFIG_HOME", "/nonexistent");
    command.env("SHMEM_SYMMETRIC_SIZE", "8M");
    Ok(command.output()?)
}

/// Checks that a program succeeds with this output.
pub(super) fn works((name, options, said): (&str, &str, &str)) -> Tested {
    let folder = tempfile::tempdir()?;
    let program = compile(&folder, name, options)?;
    for shape @ (pes, _) in SHAPES {
        let done = run(&program, shape, "")?;
        let (found, said) = (text(&done), said.replace("{pes}", &pes.to_string()));
        let found = found.split_inclusive('\n').filter(|line| !line.starts_with(TOO_MUCH));
        let found: String = found.collect();
        ensure(done.status.success() && found == said, &format!("{shape:?}: {done:?}"))?;
    }
    Ok(())
}

/// Programs end in many ways, on two PEs, and determine the status of the job.
pub(super) fn ends(sharing: &str) -> Tested {
    let folder = tempfile::tempdir()?;
    let program = compile(&folder, "ends.c", "-std=c11")?;
    for (what, status, part) in ENDS {
        let done = run(&program, (2, sharing), what)?;
        let found = text(&done);
        let is_it = done.status.code() == Some(status) && found.contains(part);
        ensure(is_it && (status > 0 || found.is_empty()), &format!("{what}: {done:?}"))?;
    }
    Ok(())
}

/// Checks the errors of OpenSHMEM programs that cannot run under an MPI.
pub(super) fn refused() -> Tested {
    let folder = tempfile::tempdir()?;
    for (options, each, line) in [
        ("", "2", "CONSORT_PES_PER_PROCESS is `2`, but a PE of OpenSHMEM is a process: unset it"),
        ("-static", "1", "a static executable cannot load an MPI: link it without -static"),
    ] {
        let program = compile(&folder, "rma.c", options)?;
        let mut run = Command::new(COMMAND);
        run.args(["run", "--hosts", "localhost", "--allow-run-as-root", "-n", "2"]);
        let done = run.args(["--pes-per-process", each]).arg(program).output()?;
        let said = text(&done);
        ensure(!done.status.success() && said.contains(line), &said)?;
    }
    // Started by the MPI's own launcher.
    let program = compile(&folder, "rma.c", "")?;
    let mut run = Command::new("sh");
    let script = "options=$(mpirun --version | grep -q Open && echo --allow-run-as-root)
                  exec mpirun $options -n 2 \"$1\"";
    run.args(["-c", script, "sh"]).arg(program).env("SHMEM_SYMMETRIC_SIZE", "odd");
    let done = run.output()?;
    let said = text(&done);
    let times = said.matches("SHMEM_SYMMETRIC_SIZE is `odd`").count();
    ensure(!done.status.success() && times == 1, &format!("{times}x: {said}"))
}
