//! OpenSHMEM programs in C and C++: compiled with `consort cc`, run with `consort run`, and with
//! the wrappers of an installation. The sources are in `shmem/`.

mod exits;
mod install;

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use consort_sandbox::built;

const COMMAND: &str = env!("CARGO_BIN_EXE_consort");

/// Checks that the C libraries are next to the command.
pub(crate) fn library() {
    for name in ["libconsort_shmem.a", "libconsort_c.a"] {
        built(COMMAND, name);
    }
}

fn consort() -> Command {
    library();
    let mut consort = Command::new(COMMAND);
    // No wisdom, and so no warning about it.
    consort
        .stdin(Stdio::null())
        .env_remove("CONSORT_WISDOM")
        .env("XDG_CONFIG_HOME", "/nonexistent");
    consort
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/shmem").join(name)
}

fn text(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{error}")
}

fn output(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Compiles a source with these compiler options.
fn compile(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let program = Path::new(name).file_name().expect("a file");
    let program = folder.join(program.to_string_lossy().replace('.', "-"));
    let language = if name.ends_with(".cpp") { "c++" } else { "cc" };
    let mut cc = consort();
    cc.arg(language).args(["-O1", "-Wall", "-Wextra", "-Werror"]).args(options);
    let done = output(cc.arg(source(name)).arg("-o").arg(&program));
    assert!(done.status.success(), "{name} {options:?}: {}", text(&done));
    program
}

/// Runs a program on `pes` PEs.
fn run(program: &Path, pes: u32, arguments: &[&str]) -> Output {
    let mut run = consort();
    run.args(["run", "--timeout", "60", "-n", &pes.to_string()]).arg(program).args(arguments);
    output(run.env("SHMEM_SYMMETRIC_SIZE", "8M"))
}

/// Runs a program on different numbers of PEs, and checks its output.
fn works(name: &str, options: &[&str], said: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), name, options);
    for pes in [1, 2, 3, 4, 8] {
        let done = run(&program, pes, &[]);
        let (text, said) = (text(&done), said.replace("{pes}", &pes.to_string()));
        assert!(done.status.success() && text == said, "{name} on {pes}: {}: {text}", done.status);
    }
    let done = output(&mut Command::new(program));
    assert!(done.status.success(), "{name} alone: {}: {}", done.status, text(&done));
}

#[test]
fn puts_and_gets_pass_their_program() {
    works("rma.c", &["-std=c11"], "");
}

#[test]
fn atomic_operations_pass_their_program() {
    works("atomics.c", &["-std=c11"], "");
}

#[test]
fn waits_and_locks_pass_their_program() {
    works("waits.c", &["-std=c11"], "");
}

#[test]
fn collective_routines_pass_their_program() {
    works("collectives.c", &["-std=c11", "-Wno-unused-variable"], "");
}

#[test]
fn threads_use_active_sets_at_the_same_time() {
    works("sets.c", &["-std=c11", "-pthread"], "");
}

#[test]
fn memory_and_counting_puts_pass_their_program() {
    // It also requests more memory than exists, which PE 0 reports once.
    let full = "warning: PE 0: shmem_malloc returns null: 1152921504606846976 bytes do not fit \
                the symmetric heap, where 0 of 8388608 bytes are in use: this machine does not \
                have that much memory, so check the size\n";
    works("memory.c", &["-std=c11"], full);
}

#[test]
fn profiling_names_and_cpp_compile_and_run() {
    works("profile.c", &["-std=c99"], "");
    works("plus.cpp", &["-std=c++17"], "");
}

#[test]
fn names_of_version_1_0_work() {
    works("old.c", &["-std=c99", "-Wno-deprecated-declarations"], "");
}

#[test]
fn examples_of_the_specification_work() {
    works("examples.c", &["-std=c11"], "");
}

/// The end of a program, its status, and a part of the last line.
const ENDS: [(&str, i32, &str); 18] = [
    ("", 0, ""),
    ("child", 0, ""),
    ("child before", 0, ""),
    ("start_pes", 0, ""),
    ("start_pes, child", 0, ""),
    ("start_pes, misuse", 1, "shmem_p: argument pe is 999"),
    ("at exit", 0, ""),
    ("exit", 3, "failed: it exited with status 3"),
    ("misuse", 1, "shmem_p: argument pe is 999"),
    ("start_pes, global 5", 5, "it called shmem_global_exit(5)"),
    ("global 0", 0, ""),
    ("global 0, handler", 0, ""),
    ("global 5, handler", 5, "it called shmem_global_exit(5)"),
    ("thread", 0, ""),
    ("never", 0, ""),
    ("again", 0, ""),
    ("inner", 0, ""),
    ("exit at exit, misuse", 1, "shmem_p: argument pe is 999"),
];

#[test]
fn programs_end_in_many_ways() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "ends.c", &["-std=c11"]);
    for (what, status, line) in ENDS {
        for pes in [1, 2, 3] {
            let done = run(&program, pes, &[what]);
            let text = text(&done);
            let is_it = done.status.code() == Some(status) && text.contains(line);
            assert!(is_it && text.lines().count() <= 1, "{what}, {pes}: {}: {text}", done.status);
        }
        let done = output(Command::new(&program).arg(what));
        let is_it = done.status.code() == Some(status);
        assert!(is_it, "{what}, alone: {}: {}", done.status, text(&done));
    }
}

#[test]
fn information_is_printed_by_one_pe() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "hello.c", &[]);
    let mut run = consort();
    run.args(["run", "-n", "3"]).arg(program).envs([("SHMEM_INFO", "1"), ("SHMEM_VERSION", "1")]);
    let said = text(&output(run.env("SHMEM_SYMMETRIC_SIZE", "8M")));
    for line in [", OpenSHMEM 1.6", "SHMEM_SYMMETRIC_SIZE=8388608: ", "large pages of the heap: "] {
        assert_eq!(said.matches(line).count(), 1, "{line}: {said}");
    }
}

#[test]
fn valgrind_finds_nothing() {
    works("hello.c", &["-std=c11", "-g"], "");
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "hello.c", &["-g"]);
    let wisdom = folder.path().join("wisdom.toml");
    let tune = ["tune", "--pes", "2", "--collective", "barrier", "--budget", "0", "--wisdom"];
    let done = output(consort().args(tune).arg(&wisdom));
    assert!(wisdom.exists(), "{}: {}", done.status, text(&done));
    for wisdom in [Path::new("/nonexistent/wisdom.toml"), &wisdom] {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--quiet", "--error-exitcode=9", "--leak-check=full"]).arg(&program);
        let done = output(valgrind.env("CONSORT_WISDOM", wisdom));
        assert!(done.status.success(), "{}: {}", done.status, text(&done));
    }
}

/// With less address space, less is reserved.
#[test]
fn job_runs_with_little_address_space() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "hello.c", &[]);
    library();
    for kilobytes in [8_000_000, 300_000] {
        let mut limited = Command::new("sh");
        let script = format!("ulimit -v {kilobytes} && exec \"$0\" run -n 2 \"$1\"");
        limited.args(["-c", &script, COMMAND]).arg(&program).env("SHMEM_SYMMETRIC_SIZE", "8M");
        let done = output(&mut limited);
        assert!(done.status.success(), "{kilobytes}: {}: {}", done.status, text(&done));
    }
}

#[test]
fn static_variables_are_symmetric_in_every_kind_of_executable() {
    for kind in [
        &["-pie", "-fPIE"][..],
        &["-no-pie", "-fno-pie"],
        &["-Wl,-z,now"],
        &["-Wl,-z,norelro"],
        &["-static"],
        &["-static-pie"],
    ] {
        works("statics.c", kind, "statics of {pes} PEs\n");
    }
    if cfg!(target_arch = "x86_64") {
        works("huge.c", &["-mcmodel=medium", "-fno-pie", "-no-pie"], "");
    }
}

#[test]
fn children_have_copies_of_static_variables() {
    for kind in [&[][..], &["-static"], &["-static-pie"]] {
        works("forks.c", kind, "");
    }
}

#[test]
fn constructors_may_use_static_variables() {
    for kind in [&[][..], &["-DEARLY"], &["-static"]] {
        works("constructors.cpp", kind, "");
    }
}

#[test]
fn constants_may_be_sources() {
    for kind in [&[][..], &["-no-pie", "-fno-pie"], &["-static"]] {
        works("constants.c", kind, "");
    }
}

/// Sanitizers guard the memory between static variables.
#[test]
fn static_variables_work_under_sanitizers() {
    let folder = tempfile::tempdir().expect("a folder");
    let probe = folder.path().join("probe.c");
    std::fs::write(&probe, "int main(void) { return 0; }").expect("a source");
    for sanitizer in ["-fsanitize=address", "-fsanitize=undefined"] {
        let mut cc = Command::new("cc");
        cc.arg(sanitizer).arg(&probe).arg("-o").arg(folder.path().join("probe"));
        if output(&mut cc).status.success() {
            works("statics.c", &[sanitizer], "statics of {pes} PEs\n");
        } else {
            eprintln!("not tested: this compiler has no {sanitizer}");
        }
    }
}

/// The experiments of the paper on counting puts, with few rounds.
#[test]
fn experiments_with_counting_puts_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let experiments = "../../../../consort-shmem/examples/counting";
    for (name, pes, arguments, said) in [
        ("ping_pong", &[2][..], &["64", "5"][..], "        64 "),
        ("all_to_all", &[1, 2, 3, 4], &["64", "4"], "        64 "),
        ("synch_p2p", &[1, 2, 3, 4], &["50", "20", "2"], "50 x 20 on {pes} PEs: "),
    ] {
        let program = compile(folder.path(), &format!("{experiments}/{name}.c"), &[]);
        for &pes in pes {
            let done = run(&program, pes, arguments);
            let (text, said) = (text(&done), said.replace("{pes}", &pes.to_string()));
            assert!(done.status.success() && text.contains(&said), "{name} on {pes}: {text}");
        }
        let done = run(&program, 2, &["1", "1"]);
        assert!(text(&done).contains("PE 0: use "), "{name}: {}", text(&done));
    }
}

#[test]
fn misuse_ends_the_job_with_a_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "misuse.c", &[]);
    for (which, line) in [
        ("0", "shmem_barrier_all: called before shmem_init"),
        ("1", "argument dest, 4 bytes at"),
        ("2", "argument pe is 99, expected 0 to 1"),
        ("3", "was not allocated in the symmetric heap, or is free already"),
        ("4", "shmem_p: called after shmem_finalize"),
        ("5", "argument ctx is SHMEM_CTX_INVALID"),
        ("6", "argument cmp is 77"),
        ("7", "argument source, 4 bytes at"),
        ("8", "was killed by signal 6"),
        ("9", "a forked child ends, since its static variables could not be copied"),
        ("10", "argument dest, 4 bytes at"),
        ("11", "argument dest, 4 bytes at"),
        ("12", "shmem_alltoalls: argument dest, 18446744073709551615 bytes at"),
        ("13", "shmem_malloc: argument size is "),
        ("14", "shmem_free: argument ptr, as an offset in the heap, is "),
        ("15", "shmem_realloc: argument size is "),
    ] {
        // Different arguments on PEs are only found with this variable.
        let mut run = consort();
        run.args(["run", "-n", "2"]).arg(&program).arg(which).env("SHMEM_DEBUG", "1");
        let done = output(&mut run);
        let said = text(&done);
        assert!(!done.status.success() && said.contains(line), "{which}: {}: {said}", done.status);
    }
    for (size, line) in [
        ("rubbish", "SHMEM_SYMMETRIC_SIZE is `rubbish`: use a number of bytes"),
        ("60T", "SHMEM_SYMMETRIC_SIZE is `60T`: use less than the machine's memory"),
    ] {
        let mut run = consort();
        run.args(["run", "-n", "2"]).arg(&program).arg("99").env("SHMEM_SYMMETRIC_SIZE", size);
        let done = output(&mut run);
        let said = text(&done);
        assert!(!done.status.success(), "{size}: {said}");
        // Printed once, whether or not the second PE got that far before it was ended.
        assert_eq!(said.matches(line).count(), 1, "{size}: {said}");
    }
}

#[test]
fn empty_variables_count_as_unset() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "hello.c", &[]);
    let ours = ["SYMMETRIC_SIZE", "VERSION", "INFO", "DEBUG"];
    let ours = ["SHMEM", "SMA"].map(|prefix| ours.map(|name| format!("{prefix}_{name}")));
    let runtimes = ["SEGMENT", "PES", "PES_PER_PROCESS", "SHARING", "PLACEMENT", "RECORD"];
    let others = ["PAIRWISE", "WISDOM", "LAUNCH", "CACHE", "MPICC"];
    let theirs = runtimes.into_iter().chain(others).map(|name| format!("CONSORT_{name}"));
    let names: Vec<String> = ours.into_iter().flatten().chain(theirs).collect();
    for value in ["", " "] {
        let mut launched = consort();
        launched.args(["run", "-n", "2", "--timeout", "60"]).arg(&program);
        for mut command in [launched, Command::new(&program)] {
            let done = output(command.envs(names.iter().map(|name| (name, value))));
            assert!(done.status.success() && text(&done).is_empty(), "{command:?}: {done:?}");
        }
    }
    // The old name applies if the new one is empty.
    let mut alone = Command::new(&program);
    let done = output(alone.env("SHMEM_SYMMETRIC_SIZE", "").env("SMA_SYMMETRIC_SIZE", "rubbish"));
    assert!(text(&done).contains("SMA_SYMMETRIC_SIZE is `rubbish`"), "{}", text(&done));
}

#[test]
fn a_job_ends_with_the_status_of_the_pe_that_ends_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = compile(folder.path(), "early.c", &[]);
    for status in [0, 1, 3, 255] {
        let given = status.to_string();
        for when in ["late", "soon"] {
            for pes in [2, 4] {
                let done = run(&program, pes, &["all", &given, when]);
                let said = text(&done);
                assert_eq!(done.status.code(), Some(status), "{when} on {pes}: {said}");
                let line = "consort run: PE 1 ended the job: it called shmem_global_exit";
                let line = format!("{line}({status})\n");
                assert_eq!(said, if status > 0 { &line } else { "" });
            }
        }
    }
    let done = run(&program, 4, &["one", "3", "late"]);
    assert_eq!(done.status.code(), Some(3), "{}", text(&done));
    assert!(text(&done).contains("PE 1 failed: it"), "{}", text(&done));
}
