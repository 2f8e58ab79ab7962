//! `consort bench`, `tune`, `topo`, `reproduce` and `run`, with the smallest budgets, and OpenSHMEM
//! programs. The `mpirun` in `PATH` starts the processes. On a machine without an MPI, the tests
//! are listed as ignored.

mod shmem;

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use consort_sandbox::built;
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use tempfile::TempDir;

/// The time limit of a command.
const LIMIT: Duration = Duration::from_secs(120);

/// Measurements, the name in their figures, and their number of PEs.
const BENCHES: [(&str, &str, u64); 6] = [
    ("point-to-point put-signal", "put-signal", 2),
    ("point-to-point put-rate --bytes 8,64", "put-rate", 2),
    ("point-to-point put-bandwidth --bytes 64k", "put-bandwidth", 2),
    ("barrier --pes 3", "barrier", 3),
    ("collective all_reduce --pes 2 --bytes 8", "all_reduce", 2),
    ("collective broadcast --pes 4 --bytes 8", "broadcast", 4),
];

/// Settings that all processes reject, and their messages.
const REFUSED: [(&str, &str, &str); 2] = [
    ("CONSORT_SEGMENT", "odd", "CONSORT_SEGMENT is `odd`: use private or shared"),
    ("CONSORT_CACHE", "/proc/nowhere", "cannot keep the compiled MPI adapter in /proc/nowhere"),
];

type Tested = Result<(), Failed>;

fn main() -> ExitCode {
    let is_here = ["mpirun", "mpicc"].into_iter().all(is_installed);
    let benches = BENCHES.into_iter().map(|(what, name, pes)| {
        Trial::test(format!("bench::{}", what.replace(' ', "_")), move || bench(what, name, pes))
    });
    let refused = REFUSED.into_iter().map(|(setting, value, why)| {
        let name = format!("ends::{}", setting.to_lowercase());
        Trial::test(name, move || is_refused_once(setting, value, why))
    });
    let others = [
        Trial::test("bench::in_turn", in_turn),
        Trial::test("tune::wisdom_is_found_again", wisdom_is_found_again),
        Trial::test("bench::warned_once", warned_once),
        Trial::test("ends::killed", killed),
        Trial::test("ends::noexec", cache_without_programs).with_ignored_flag(!may_mount()),
        Trial::test("run::on_hosts", on_hosts),
        Trial::test("topo::places", places),
        Trial::test("mixed::one_machine_is_not_a_mixture", one_machine_is_not_a_mixture),
        Trial::test("mixed::machines", two_machines).with_ignored_flag(!has_namespaces()),
        Trial::test("predict::between_processes", predicted),
        Trial::test("reproduce::G7", || reproduces("G7", "over two, 4 PEs", 25)),
        Trial::test("reproduce::F7", || reproduces("F7", "4 PEs", 16)),
    ];
    let programs = shmem::PROGRAMS.into_iter().map(|program| {
        let (name, options, _) = program;
        let name = format!("shmem::{name}_{}", options.replace(' ', ""));
        Trial::test(name, move || shmem::works(program))
    });
    let ends = ["machine", "process"].into_iter().map(|sharing| {
        Trial::test(format!("shmem::ends_by_{sharing}"), move || shmem::ends(sharing))
    });
    let programs = programs.chain(ends).chain([Trial::test("shmem::refused", shmem::refused)]);
    let tests = benches.chain(refused).chain(others).chain(programs);
    let tests = tests.map(|test| {
        let is_ignored = !is_here || test.has_ignored_flag();
        test.with_ignored_flag(is_ignored)
    });
    let tests = tests.collect();
    // Jobs of many processes would slow each other down.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, tests).exit_code()
}

fn is_installed(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the command in an empty folder, with separate wisdom.
fn consort(folder: &TempDir, line: &str) -> Command {
    let mut command = Command::new("timeout");
    let consort = env!("CARGO_BIN_EXE_consort");
    let is_of_laboratory = ["predict", "reproduce"].iter().any(|name| line.starts_with(name));
    let program = if is_of_laboratory { built(consort, "consort-lab") } else { consort.into() };
    command.arg(LIMIT.as_secs().to_string()).arg(program);
    command.args(line.split_whitespace()).current_dir(folder);
    command.env("CONSORT_WISDOM", folder.path().join("wisdom.toml"));
    // The file of a session distinguishes its processes from others.
    command.env("TMPDIR", folder.path());
    command
}

/// Returns the standard output, if the command succeeds.
fn printed(folder: &TempDir, line: &str) -> Result<String, Failed> {
    let Output { status, stdout, stderr } = consort(folder, line).output()?;
    let said = String::from_utf8_lossy(&stderr);
    if !status.success() {
        return Err(format!("{line}: {status}: {said}").into());
    }
    Ok(String::from_utf8(stdout)?)
}

/// Returns the standard error and the status, if the command fails.
fn complaint(mut command: Command) -> Result<(String, Option<i32>), Failed> {
    let Output { status, stdout, stderr } = command.output()?;
    if status.success() {
        return Err(format!("it ended well: {}", String::from_utf8_lossy(&stdout)).into());
    }
    Ok((String::from_utf8_lossy(&stderr).into_owned(), status.code()))
}

/// Fails unless the condition holds.
fn ensure(holds: bool, otherwise: &str) -> Tested {
    if holds { Ok(()) } else { Err(otherwise.into()) }
}

/// The figures, ours and those of the MPI, have times but no class, because nothing determines
/// where the processes are.
fn bench(what: &str, name: &str, pes: u64) -> Tested {
    let folder = tempfile::tempdir()?;
    let text = printed(&folder, &format!("bench {what} --fabric mpi --budget 0 --json"))?;
    let figures: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let is_timed = |one: &&Value| one["median_ns"].as_f64() > Some(0.0);
    for figure in &figures {
        ensure(figure["bench"] == name && figure["pes"] == pes, &text)?;
        ensure(figure["c2c_class"].is_null() && figure["placement"] != "bound to cores", &text)?;
    }
    let (ours, peers): (Vec<&Value>, Vec<&Value>) =
        figures.iter().filter(is_timed).partition(|one| one["peer"].is_null());
    ensure(!ours.is_empty() && ours.iter().all(|one| one["fabric"] == "mpi"), &text)?;
    ensure(peers.len() == ours.len() && peers.iter().all(|one| one["peer"] != "mpirun"), &text)
}

/// Four PEs of two processes, whose ranks are dealt in turn.
fn in_turn() -> Tested {
    let folder = tempfile::tempdir()?;
    let page = printed(&folder, "bench barrier --fabric mpi:2:in-turn --pes 4 --budget 0")?;
    let says = |words: &str| page.replace('\n', " ").contains(words);
    ensure(says("4 PEs of an MPI's processes in turn, placed by the launcher"), &page)?;
    ensure(!says("not measured"), &page)
}

/// All processes find that wisdom cannot be used, in each launch, and this is reported once.
fn warned_once() -> Tested {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("wisdom.mpi.toml"), "nonsense")?;
    let line = "bench barrier --fabric mpi --pes 3 --budget 1 --peers none";
    let Output { status, stderr, .. } = consort(&folder, line).output()?;
    let said = String::from_utf8_lossy(&stderr);
    let times = said.matches("warning: wisdom is not used: ").count();
    ensure(status.success() && times == 1, &format!("{status}, {times}x: {said}"))
}

/// Tuned wisdom is in a file, which serves a call of such PEs and of no others.
fn wisdom_is_found_again() -> Tested {
    let folder = tempfile::tempdir()?;
    let line = "tune --fabric mpi --pes 2 --collective barrier --budget 1 --json";
    let outcome: Value = serde_json::from_str(&printed(&folder, line)?)?;
    let explained = printed(&folder, "explain barrier --fabric mpi --pes 2 --json")?;
    let choice: Value = serde_json::from_str(&explained)?;
    ensure(choice["origin"] == "exact", &format!("{choice}\nafter\n{outcome}"))?;
    let of_threads = printed(&folder, "explain barrier --pes 2 --json")?;
    let choice: Value = serde_json::from_str(&of_threads)?;
    ensure(choice["origin"] == "model", &of_threads)
}

/// All processes complain, and this is reported once.
fn is_refused_once(setting: &str, value: &str, why: &str) -> Tested {
    let folder = tempfile::tempdir()?;
    for line in [
        "bench barrier --fabric mpi --pes 4 --budget 0 --peers none",
        "tune --fabric mpi --pes 4 --collective barrier --budget 0.5",
    ] {
        let mut command = consort(&folder, line);
        command.env(setting, value);
        let (said, status) = complaint(command)?;
        let times = said.matches(why).count();
        ensure(status == Some(1) && times == 1, &format!("{line}: {status:?}, {times}x: {said}"))?;
        ensure(said.contains("mpirun failed") && !said.contains("before the end"), &said)?;
    }
    Ok(())
}

/// A cache from which nothing can be loaded.
fn cache_without_programs() -> Tested {
    let folder = tempfile::tempdir()?;
    let cache = folder.path().join("cache");
    fs::create_dir(&cache)?;
    let script = "mount -t tmpfs -o noexec tmpfs \"$CONSORT_CACHE\" && exec \"$@\"";
    let line = "bench barrier --fabric mpi --pes 4 --budget 0 --peers none";
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(env!("CARGO_BIN_EXE_consort")).args(line.split(' ')).current_dir(&folder);
    command.env("CONSORT_CACHE", &cache).env("TMPDIR", folder.path());
    let (said, status) = complaint(command)?;
    let times = said.matches("is mounted `noexec`").count();
    ensure(status == Some(1) && times == 1, &format!("{status:?}, {times}x: {said}"))
}

/// Ranks that are dealt in turn to two processes of this machine.
fn places() -> Tested {
    let folder = tempfile::tempdir()?;
    let line = "topo --fabric mpi:2:in-turn --pes 4 --budget 0.01 --json";
    let text = printed(&folder, line)?;
    let found: Value = serde_json::from_str(&text)?;
    let all = |of: &str, key: &str| {
        let all = found[of].as_array().into_iter().flatten();
        all.map(|one| one[key].clone()).collect::<Vec<Value>>()
    };
    ensure(all("places", "process") == [0, 1, 0, 1], &text)?;
    ensure(all("places", "machine") == [0; 4], &text)?;
    let kinds = ["threads", "threads", "processes", "processes", "processes", "processes"];
    ensure(all("distances", "between") == kinds, &text)?;
    ensure(all("distances", "one_way_ns").iter().all(|ns| ns.as_f64() > Some(0.0)), &text)
}

/// Processes of one machine are reported as processes.
fn one_machine_is_not_a_mixture() -> Tested {
    let folder = tempfile::tempdir()?;
    let line = "bench barrier --fabric mixed --pes 2 --budget 0 --peers none --json";
    let Output { status, stdout, stderr } = consort(&folder, line).output()?;
    let (text, said) = (String::from_utf8(stdout)?, String::from_utf8_lossy(&stderr));
    ensure(
        status.success()
            && said.contains("2 PEs on one machine, so this measures --fabric processes"),
        &said,
    )?;
    let figure: Value = serde_json::from_str(text.lines().next().unwrap_or_default())?;
    ensure(figure["fabric"] == "processes" && figure["median_ns"].as_f64() > Some(0.0), &text)?;
    let (said, status) =
        complaint(consort(&folder, "bench barrier --fabric mixed:1x2 --pes 4 --budget 0"))?;
    ensure(status == Some(1) && said.contains("the MPI starts 4 PEs as processes"), &said)?;
    let text = printed(&folder, "topo --fabric mixed:2 --pes 4 --budget 0 --json")?;
    let found: Value = serde_json::from_str(&text)?;
    ensure(found["fabric"] == "processes" && found["distances"] == Value::Array(Vec::new()), &text)
}

/// Returns whether a process may have another host name.
fn has_namespaces() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--uts", "hostname", "m0"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns whether this user may mount file systems in a namespace.
fn may_mount() -> bool {
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Returns the folder of an `mpirun` that deals ranks in turn to two machines: their processes have
/// two host names, so they act as those of two machines.
fn machines(folder: &Path) -> Result<PathBuf, Failed> {
    let found = Command::new("sh").args(["-c", "command -v mpirun"]).output()?.stdout;
    let (real, bin) = (String::from_utf8(found)?, folder.join("bin"));
    fs::create_dir(&bin)?;
    let machine = bin.join("machine");
    let scripts = [
        (
            machine.clone(),
            "rank=${OMPI_COMM_WORLD_RANK:-$PMI_RANK}\n\
             exec unshare --uts sh -c 'hostname m$0; exec \"$@\"' $((rank % 2)) \"$@\""
                .to_owned(),
        ),
        (
            bin.join("mpirun"),
            format!(
                "for word; do shift\n\
                 case $word in */consort) set -- \"$@\" {} ;; esac\n\
                 set -- \"$@\" \"$word\"; done\n\
                 exec {} \"$@\"",
                machine.display(),
                real.trim(),
            ),
        ),
    ];
    for (path, text) in scripts {
        fs::write(&path, format!("#!/bin/sh\n{text}\n"))?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    }
    Ok(bin)
}

/// PEs of two machines are a mixture, whose wisdom has the shape of machines in its name; programs
/// look for it there.
fn two_machines() -> Tested {
    let folder = tempfile::tempdir()?;
    let bin = machines(folder.path())?;
    let path = env::join_paths([bin].into_iter().chain(env::split_paths(&env::var("PATH")?)))?;
    let command = |line: &str| {
        let mut command = consort(&folder, line);
        command.env("PATH", &path);
        command
    };
    let printed = |line: &str| -> Result<String, Failed> {
        let Output { status, stdout, stderr } = command(line).output()?;
        let said = String::from_utf8_lossy(&stderr);
        ensure(status.success(), &format!("{line}: {status}: {said}"))?;
        Ok(String::from_utf8(stdout)?)
    };
    let text = printed("topo --fabric mixed --pes 4 --budget 0.01 --json")?;
    let found: Value = serde_json::from_str(&text)?;
    let distances = found["distances"].as_array().map_or(&[][..], Vec::as_slice);
    let kinds = |kind: &str| distances.iter().filter(|one| one["between"] == kind).count();
    ensure(found["fabric"] == "mixed:2x1:in-turn", &text)?;
    ensure((kinds("processes"), kinds("machines")) == (2, 4), &text)?;
    let text = printed("topo --fabric mixed:2:in-turn --pes 8 --budget 0")?;
    ensure(text.contains("8 PEs of 4 processes (mixed:2x2:in-turn) on 2 machines"), &text)?;
    let text = printed("topo --fabric mixed --pes 2 --budget 0")?;
    ensure(text.contains("(mpi) on 2 machines"), &text)?;

    printed("tune --fabric mixed --pes 4 --collective barrier --budget 1")?;
    let text = printed("explain barrier --fabric mixed:2x1:in-turn --pes 4 --json")?;
    let choice: Value = serde_json::from_str(&text)?;
    ensure(choice["origin"] == "exact", &text)?;
    fs::write(folder.path().join("wisdom.mixed-2x1-in-turn.toml"), "nonsense")?;
    let line = "bench barrier --fabric mixed --pes 4 --budget 0 --peers none --json";
    let Output { status, stdout, stderr } = command(line).output()?;
    let (text, said) = (String::from_utf8(stdout)?, String::from_utf8_lossy(&stderr));
    ensure(status.success() && said.contains("wisdom is not used"), &said)?;
    ensure(text.contains("\"fabric\":\"mixed:2x1:in-turn\""), &text)?;
    let other = command("bench barrier --fabric mixed:2x1 --pes 4 --budget 0 --peers none");
    let (said, status) = complaint(other)?;
    let is_told = said.contains("the MPI starts 4 PEs as mixed:2x1:in-turn");
    ensure(status == Some(1) && is_told, &said)
}

/// A call of each collective by both predictions, and only the parameters of messages.
fn predicted() -> Tested {
    let folder = tempfile::tempdir()?;
    let text = printed(&folder, "predict --fabric mpi --pes 2 --bytes 8,8k --budget 1 --json")?;
    let object: Value = serde_json::from_str(&text)?;
    for key in ["latency_ns", "overhead_ns", "gap_ns", "gap_per_byte_ns", "copy_gbps"] {
        ensure(object[key].as_f64() >= Some(0.0), &format!("{key} in {text}"))?;
    }
    let calls = object["calls"].as_array().map_or(&[][..], Vec::as_slice);
    ensure(calls.len() == 1 + 3 * 2, &text)?;
    for call in calls {
        let times = ["measured_ns", "predicted_ns", "model_ns"].map(|key| call[key].as_f64());
        ensure(times.iter().all(|&ns| ns > Some(0.0)), &call.to_string())?;
    }
    ensure(object["model_worst_error"].as_f64() >= object["model_median_error"].as_f64(), &text)?;
    let page = printed(&folder, "predict --fabric mpi --pes 2 --bytes 8 --budget 1")?;
    ensure(page.contains("LogGP") && page.contains("all_reduce of 8 B"), &page)?;
    ensure(page.lines().all(|line| line.chars().count() <= 100), &page)
}

/// A claim has this many figures, all measured, whose names contain this part.
fn reproduces(claim: &str, part: &str, count: usize) -> Tested {
    let folder = tempfile::tempdir()?;
    let text = printed(&folder, &format!("reproduce {claim} --budget 0 --json"))?;
    let figures: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let is_measured = |one: &&Value| {
        let name = one["quantity"].as_str().unwrap_or_default();
        one["native"].as_f64() > Some(0.0) && (name.contains(part) || name.contains("median"))
    };
    let measured = figures.iter().filter(is_measured).count();
    ensure(measured == count && figures.len() == count, &text)?;
    let page = printed(&folder, &format!("reproduce {claim} --budget 0"))?;
    ensure(page.contains("on 1 machine") && !page.contains("not measured"), &page)
}

/// The program of README.md, two PEs in each process.
fn on_hosts() -> Tested {
    let program = built(env!("CARGO_BIN_EXE_consort"), "examples/first");
    let folder = tempfile::tempdir()?;
    for order in ["blocks", "in-turn"] {
        let options = format!("--pes-per-process 2 --placement {order} --allow-run-as-root");
        let line = format!("run -n 4 --hosts localhost {options} {}", program.display());
        let text = printed(&folder, &line)?;
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        let all = ["PE 0: 6", "PE 1: 6", "PE 2: 6", "PE 3: 6"];
        ensure(lines == all, &format!("{line}: {text}"))?;
    }
    Ok(())
}

/// If a process of a session is killed, the measurement ends and names the failure.
fn killed() -> Tested {
    let folder = tempfile::tempdir()?;
    let mut command =
        consort(&folder, "bench barrier --fabric mpi --pes 2 --budget 60 --peers none");
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let measures = command.spawn()?;
    let begun = Instant::now();
    while !kill_a_session_of(folder.path())? {
        ensure(begun.elapsed() < LIMIT, "no session has begun")?;
        thread::sleep(Duration::from_millis(5));
    }
    let Output { status, stderr, .. } = measures.wait_with_output()?;
    let said = String::from_utf8_lossy(&stderr);
    ensure(begun.elapsed() < LIMIT / 4, "it took long to end")?;
    ensure(status.code() == Some(1) && said.contains("mpirun failed"), &format!("{status}: {said}"))
}

/// Kills a process of a session whose file is in this folder; returns whether there was one.
fn kill_a_session_of(folder: &Path) -> Result<bool, Failed> {
    for entry in fs::read_dir("/proc")?.filter_map(Result::ok) {
        let words = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<&[u8]> = words.split(|byte| *byte == 0).collect();
        let folder = folder.as_os_str().as_encoded_bytes();
        // The launcher's command line also has these words, but after its own options.
        if let [_, b"session", file, ..] = words[..]
            && file.starts_with(folder)
        {
            let pid = entry.file_name();
            return Ok(Command::new("kill").arg("-9").arg(pid).status()?.success());
        }
    }
    Ok(false)
}
