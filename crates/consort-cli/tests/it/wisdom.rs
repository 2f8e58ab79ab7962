//! Wisdom from the outside: created, extended, shown, moved, and rejected if it does not fit; wisdom
//! of other versions of the library, and of PEs that are processes of an MPI.

use std::{
    fs, hint,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
};

use tempfile::TempDir;

use consort_sandbox::commands::says;

/// A separate folder for each test; its wisdom is at `wisdom.toml`.
struct Place {
    folder: TempDir,
}

/// The outcome of a command.
struct Result {
    status: Option<i32>,
    out: String,
    err: String,
}

impl Place {
    fn new() -> Place {
        Place { folder: tempfile::tempdir().expect("a folder") }
    }

    /// Returns a place with measured wisdom of one barrier, in which no entry is open.
    fn tuned() -> Place {
        let place = Place::new();
        place.run("tune --collective barrier --pes 2 --budget 4").succeeds();
        place.decide();
        place
    }

    /// Turns open entries into ties: on a busy machine, a tune may leave each of them open.
    fn decide(&self) {
        self.change(|text| text.replace("confidence = \"open\"", "confidence = \"tie\""));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn wisdom(&self) -> PathBuf {
        self.path("wisdom.toml")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.wisdom()).expect("wisdom")
    }

    /// Replaces the wisdom by a changed copy, and returns its text.
    fn change(&self, change: impl Fn(&str) -> String) -> String {
        let text = change(&self.text());
        fs::write(self.wisdom(), &text).expect("a writable file");
        text
    }

    /// Runs the command in the folder.
    fn run(&self, words: &str) -> Result {
        Result::from(self.command(words).output().expect("the command starts"))
    }

    fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
        command.args(words.split_whitespace()).current_dir(self.folder.path());
        command.env("CONSORT_WISDOM", self.wisdom());
        command
    }
}

impl From<Output> for Result {
    fn from(output: Output) -> Result {
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Result { status: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

impl Result {
    #[track_caller]
    fn succeeds(self) -> Result {
        assert_eq!(self.status, Some(0), "{}{}", self.out, self.err);
        self
    }

    /// Checks that the command fails as wrong usage, with `part` in its message.
    #[track_caller]
    fn misused(self, part: &str) {
        assert_eq!(self.status, Some(2), "{}{}", self.out, self.err);
        assert!(self.err.contains(part), "`{part}` in {}", self.err);
    }

    /// Checks that the command fails with an error, with all of `parts` in its message.
    #[track_caller]
    fn fails(self, parts: &[&str]) {
        assert_eq!(self.status, Some(1), "{}{}", self.out, self.err);
        assert!(self.err.starts_with("error: ") && self.out.is_empty(), "{}{}", self.out, self.err);
        for part in parts {
            assert!(self.err.contains(part), "`{part}` in {}", self.err);
        }
    }
}

/// Returns the text with another value in the line that starts with `key`.
fn with(text: &str, key: &str, value: &str) -> String {
    let line = |line: &str| {
        let is_it = line.starts_with(key);
        if is_it { format!("{key} = \"{value}\"\n") } else { format!("{line}\n") }
    };
    text.lines().map(line).collect()
}

#[test]
fn tuned_wisdom_is_explained_and_kept() {
    let place = Place::tuned();
    let explained = place.run("explain barrier --pes 2").succeeds();
    assert!(says(&explained.out, "from: wisdom for this query"), "{}", explained.out);
    let again = place.run("tune --collective barrier --pes 2 --budget 4").succeeds();
    assert!(says(&again.out, "1 kept from before"), "{}", again.out);
    let retuned = place.run("tune --collective barrier --pes 2 --budget 4 --retune").succeeds();
    assert!(says(&retuned.out, "Queries measured: 1 in"), "{}", retuned.out);
}

/// Of a terminal's 24 lines, four rule the table, and the prompt needs one.
#[test]
fn a_tune_fits_a_screen_unless_all_tables_are_requested() {
    let place = Place::new();
    let line = "tune --collective barrier,all_reduce,broadcast,all_to_all --pes 2 --bytes 8,4k \
                --budget 6";
    let tuned = place.run(line).succeeds().out;
    assert!(tuned.lines().count() <= 19, "{tuned}");
    let path = place.wisdom().display().to_string();
    let is_short = |line: &str| line.chars().count() <= 80 || line.contains(&path);
    assert!(tuned.lines().all(is_short), "{tuned}");
    assert!(says(&tuned, "Next: `consort explain"), "{tuned}");
    let verbose = place.run(&format!("{line} --verbose")).succeeds().out;
    assert!(says(&verbose, "The fastest algorithms in symmetric memory"), "{verbose}");
    assert!(says(&verbose, "Next: `consort explain"), "{verbose}");
}

/// It is in a separate file, which only programs started by `consort run` find.
#[test]
fn processes_use_a_separate_wisdom_file() {
    let place = Place::new();
    let words = "tune --fabric processes --collective barrier --pes 2 --budget 5";
    let tuned = place.run(words).succeeds();
    assert!(tuned.out.contains("wisdom.processes.toml"), "{}", tuned.out);
    assert!(!place.wisdom().exists());
    let of = |fabric: &str| place.run(&format!("explain barrier --pes 2 --fabric {fabric}"));
    let explained = of("processes").succeeds();
    assert!(says(&explained.out, "from: wisdom for this query"), "{}", explained.out);
    let explained = of("threads").succeeds();
    assert!(says(&explained.out, "wisdom: none in use"), "{}", explained.out);
    let shown = place.run("wisdom show --fabric processes").succeeds();
    assert!(!says(&shown.out, "not used here"), "{}", shown.out);
    let path = place.path("wisdom.processes.toml").display().to_string();
    let shown = place.run(&format!("wisdom show --wisdom {path}")).succeeds();
    assert!(says(&shown.out, "not used here"), "{}", shown.out);
    let checked = place.run(&format!("{words} --check"));
    assert!([Some(0), Some(3)].contains(&checked.status), "{}{}", checked.out, checked.err);
    place.run("tune --fabric ranks").misused("use threads, processes, mpi or mixed");
}

#[test]
fn json_is_one_object() {
    let place = Place::new();
    let tuned = place
        .run("tune --collective reduce --pes 2 --bytes 8,1k --sync loose --budget 4 --json")
        .succeeds();
    let object: serde_json::Value = serde_json::from_str(&tuned.out).unwrap();
    assert_eq!(object["wisdom"], place.wisdom().to_str().unwrap());
    let entry = &object["entries"][0];
    assert_eq!((&entry["collective"], &entry["sync"]), (&"reduce".into(), &"loose".into()));
    assert!(object["comparison"][0]["library_ns"].is_number(), "{}", tuned.out);
    for words in ["explain reduce --json --all", "wisdom show --json"] {
        let shown = place.run(words).succeeds();
        let object: serde_json::Value = serde_json::from_str(&shown.out).unwrap();
        assert!(object.is_object(), "{words}: {}", shown.out);
    }
}

#[test]
fn an_estimate_measures_nothing() {
    let place = Place::new();
    let tuned = place.run("tune --rigour estimate --collective broadcast --pes 4").succeeds();
    assert!(says(&tuned.out, "Queries measured: 0 in"), "{}", tuned.out);
    let explained = place.run("explain broadcast --pes 4").succeeds();
    assert!(says(&explained.out, "by the model"), "{}", explained.out);
}

#[test]
fn check_passes_or_exits_with_status_3() {
    let place = Place::tuned();
    let checked = place.run("tune --check --collective barrier --pes 2 --budget 4");
    assert!([Some(0), Some(3)].contains(&checked.status), "{}{}", checked.out, checked.err);
    assert!(says(&checked.out, "within 10 % of the best"), "{}", checked.out);
    Place::new().run("tune --check").fails(&["does not exist", "`consort tune` makes it"]);
    place.run("tune --check --budget 0").fails(&["nothing was measured", "--budget"]);
}

#[test]
fn recorded_calls_are_tuned_and_compared() {
    let place = Place::new();
    let mut program =
        place.command("bench collective reduce --bytes 64 --pes 2 --budget 0.2 --peers none");
    let recorded = program.env("CONSORT_RECORD", place.path("calls.toml")).output();
    Result::from(recorded.expect("the command starts")).succeeds();
    let tuned = place.run("tune --record calls.toml --budget 4").succeeds();
    assert!(says(&tuned.out, "with the choices before, and"), "{}", tuned.out);
    assert!(says(&tuned.out, "use it while CONSORT_WISDOM names it"), "{}", tuned.out);
    let again =
        place.run("tune --record calls.toml --record calls.toml --budget 4 --json").succeeds();
    let object: serde_json::Value = serde_json::from_str(&again.out).unwrap();
    let rows = object["replayed"]["rows"].as_array().expect("rows");
    // On a busy machine, the least important one may not be compared.
    let measured_count = object["measured_count"].as_u64().expect("a number");
    assert!((1..=measured_count).contains(&(rows.len() as u64)), "{}", again.out);
    let sum = |ns: &str| {
        let of = |row: &serde_json::Value| row["calls"].as_f64().zip(row[ns].as_f64());
        rows.iter().map(|row| of(row).map_or(0.0, |(calls, ns)| calls * ns)).sum::<f64>()
    };
    for ns in ["before_ns", "after_ns"] {
        let whole = object["replayed"][ns].as_f64().expect("a time");
        assert!((sum(ns) / whole - 1.0).abs() < 1e-9, "{}", again.out);
    }
    let reduce = |rows: &[serde_json::Value]| {
        rows.iter().any(|row| row["collective"] == "reduce" && row["bytes"] == 64)
    };
    assert!(reduce(rows), "{}", again.out);
    let checked = place.run("tune --check --record calls.toml --budget 4 --json");
    let object: serde_json::Value = serde_json::from_str(&checked.out).unwrap();
    assert!(reduce(object["penalties"].as_array().expect("rows")), "{}", checked.out);

    fs::write(place.path("empty.toml"), "").unwrap();
    place.run("tune --record empty.toml").fails(&["empty.toml has no recorded calls"]);
    place.run("tune --record none.toml").fails(&["cannot read none.toml"]);
    fs::write(place.path("other.toml"), "[[calls]]\nformat = 7\n").unwrap();
    place.run("tune --record other.toml").fails(&["other.toml:1", "format 7", "format 1"]);
    fs::write(place.path("cut.toml"), "[[calls]]\nformat = 1\n").unwrap();
    place.run("tune --record cut.toml").fails(&["cut.toml:1", "missing field"]);
    let vector = "format = 1\ncollective = \"gather_vector\"\nsync = \"mine\"\npes = 2\nbytes = 0\n\
                  operator = \"commutative\"\nsymmetric = false\ncalls = 4\n";
    fs::write(place.path("vector.toml"), format!("[[calls]]\n{vector}")).unwrap();
    place.run("tune --record vector.toml").fails(&["vector variants cannot"]);
}

#[test]
fn identical_candidates_are_named_together() {
    let place = Place::new();
    let explained = place.run("explain reduce --bytes 4k --pes 2 --all").succeeds();
    assert!(explained.out.contains("  the same here: "), "{}", explained.out);
    let json = place.run("explain gather --bytes 64 --pes 2 --json").succeeds();
    let object: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    assert!(object["same"].is_array() && object["measured_pes"] == serde_json::json!([]));
}

#[test]
fn broken_wisdom_gets_a_warning_and_survives() {
    let place = Place::tuned();
    for broken in ["", "not wisdom at all", "[wisdom]\nformat = 3\n"] {
        fs::write(place.wisdom(), broken).unwrap();
        let explained = place.run("explain barrier").succeeds();
        assert!(explained.err.starts_with("warning: wisdom is not used: "), "{}", explained.err);
        assert!(explained.err.contains("not wisdom"), "{}", explained.err);
        assert!(says(&explained.out, "by the model"), "{}", explained.out);
        let refusals = [
            "explain barrier --wisdom wisdom.toml",
            "tune --collective barrier --budget 0.5",
            "tune --check",
            "wisdom show",
            "wisdom export copy.toml",
            "wisdom merge wisdom.toml",
        ];
        for words in refusals {
            place.run(words).fails(&["wisdom.toml:", "not wisdom", "move it away"]);
        }
        assert_eq!(place.text(), broken);
        assert!(!place.path("copy.toml").exists());
    }
}

#[test]
fn truncated_wisdom_is_refused_wherever_it_ends() {
    let place = Place::tuned();
    let text = place.text();
    let ends = (0..text.len() - 2).step_by(text.len() / 12);
    for end in ends {
        fs::write(place.wisdom(), &text[..end]).unwrap();
        place.run("explain barrier --wisdom wisdom.toml").fails(&["not wisdom"]);
        place.run("tune --collective barrier --budget 0.5").fails(&["not wisdom"]);
        assert_eq!(place.text(), text[..end]);
    }
}

#[test]
fn wisdom_of_another_machine_is_not_touched() {
    let place = Place::tuned();
    let text = place.change(|text| with(text, "machine", "Niagara2"));
    let parts = ["made on machine `Niagara2`, but this is", "--wisdom FILE"];
    place.run("tune --collective barrier --budget 0.5").fails(&parts);
    place.run("explain barrier --wisdom wisdom.toml").fails(&parts);
    place.run("wisdom import wisdom.toml --wisdom other.toml").fails(&parts);
    place.run("wisdom merge wisdom.toml --wisdom other.toml").fails(&parts);
    let explained = place.run("explain barrier").succeeds();
    assert!(explained.err.contains("warning") && explained.err.contains("Niagara2"));
    let shown = place.run("wisdom show").succeeds();
    assert!(says(&shown.out, "not used here: made on machine `Niagara2`"), "{}", shown.out);
    assert_eq!(place.text(), text);
    assert!(!place.path("other.toml").exists());
}

#[test]
fn unwritable_place_is_refused_before_measuring() {
    let place = Place::tuned();
    fs::write(place.path("file"), "").unwrap();
    for path in ["file/wisdom.toml", "/proc/nowhere/wisdom.toml"] {
        let words = format!("tune --collective barrier --wisdom {path}");
        place.run(&words).fails(&["cannot", path]);
    }
    fs::create_dir(place.path("folder")).unwrap();
    place.run("tune --wisdom folder").fails(&["cannot read folder"]);
}

#[test]
fn wisdom_is_exported_imported_and_merged() {
    let place = Place::tuned();
    let text = place.text();
    assert_eq!(place.run("wisdom export").succeeds().out, text);
    place.run("wisdom export copy.toml").succeeds();
    let merged = place.run("wisdom merge copy.toml --wisdom other.toml").succeeds();
    assert!(says(&merged.out, "took 1 of 1 entries"), "{}", merged.out);
    let merged = place.run("wisdom merge copy.toml").succeeds();
    assert!(says(&merged.out, "took 0 of 1 entries"), "{}", merged.out);
    place.run("tune --rigour estimate --collective reduce --pes 2").succeeds();
    let imported = place.run("wisdom import copy.toml").succeeds();
    assert!(says(&imported.out, "Imported 1 entries"), "{}", imported.out);
    assert_eq!(place.text(), text);
    assert!(place.path("wisdom.toml.old").exists());
    place.run("wisdom import wisdom.toml").fails(&["is the wisdom already"]);
    place.run("wisdom import nowhere.toml").fails(&["does not exist"]);
    let shown = place.run("wisdom show").succeeds();
    assert!(shown.out.contains("barrier") && !says(&shown.out, "not used"), "{}", shown.out);
}

#[test]
fn path_comes_from_variable_or_option() {
    let place = Place::new();
    let line = |path: &Path| format!("{}\n", path.display());
    assert_eq!(place.run("wisdom path").succeeds().out, line(&place.wisdom()));
    assert_eq!(place.run("wisdom path --wisdom here.toml").succeeds().out, "here.toml\n");
}

#[test]
fn busy_measurements_keep_their_mark() {
    let place = Place::tuned();
    let mark = "load 3.2 before the start";
    let marked = |text: &str| {
        // The machine may have been busy.
        let is_mark = |line: &&str| line.starts_with("busy = ") || line.starts_with("undisturbed");
        let idle = text.lines().filter(|line| !is_mark(line));
        let idle: String = idle.map(|line| format!("{line}\n")).collect();
        let marks = format!("undisturbed = 0.25\nbusy = \"{mark}\"\nconfidence = ");
        idle.replacen("confidence = ", &marks, 1)
    };
    let text = place.change(marked);
    let shown = place.run("wisdom show").succeeds().out;
    assert!(says(&shown, "busy: the machine was") && shown.contains("--retune"), "{shown}");
    let explained = place.run("explain barrier --pes 2").succeeds().out;
    assert!(explained.contains(mark) && explained.contains("--retune"), "{explained}");
    assert!(says(&explained, "others used the cores during 75 % of its blocks"), "{explained}");
    let json = place.run("explain barrier --pes 2 --json").succeeds().out;
    assert!(json.contains(&format!("\"busy\":\"{mark}\"")), "{json}");
    fs::rename(place.wisdom(), place.path("night.toml")).expect("a folder");
    place.run("wisdom merge night.toml").succeeds();
    assert_eq!(place.text(), text, "a merge keeps the mark");
}

/// Threads that compete for every core repeatedly take cores from the PEs.
#[test]
fn tuning_on_a_busy_machine_marks_entries() {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    if !(2..=16).contains(&cores) {
        return; // PEs share a core, or may find a free one
    }
    let (place, is_over) = (Place::new(), AtomicBool::new(false));
    let tuned = thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    hint::spin_loop();
                }
            });
        }
        let tuned = place.run("tune --collective barrier --pes 2 --budget 3");
        is_over.store(true, Relaxed);
        tuned
    });
    let (page, text) = (tuned.succeeds().out, place.text());
    assert!(says(&page, "machine was busy: "), "{page}");
    assert!(text.contains("busy = \""), "{text}");
}

/// The other release changed none of the algorithms in it.
#[test]
fn wisdom_of_another_version_is_used() {
    let place = Place::tuned();
    place.change(|text| with(text, "library", "0.0.9"));
    let explained = place.run("explain barrier --wisdom wisdom.toml").succeeds();
    assert!(explained.err.is_empty(), "{}", explained.err);
    let shown = place.run("wisdom show").succeeds();
    assert!(!says(&shown.out, "not used"), "{}", shown.out);
}

#[test]
fn wisdom_of_changed_algorithms_is_set_aside() {
    let place = Place::tuned();
    let text = place.change(|text| {
        let lines = text.lines().map(|line| match line.strip_suffix(" = 1") {
            Some(name) if name.starts_with("\"barrier ") => format!("{name} = 2"),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<String>>().join("\n") + "\n"
    });
    let message = "out of date, because all its algorithms have changed since version";
    let named = "explain barrier --wisdom wisdom.toml";
    place.run(named).fails(&[message, "run `consort tune` again"]);
    let shown = place.run("wisdom show").succeeds();
    assert!(shown.out.contains(message), "{}", shown.out);
    let tuned = place.run("tune --collective barrier --pes 2 --budget 4").succeeds();
    assert!(tuned.err.contains(message) && tuned.err.contains(".old"), "{}", tuned.err);
    assert_eq!(fs::read_to_string(place.path("wisdom.toml.old")).unwrap(), text);
    place.run(named).succeeds();
}

/// `explain` works without an MPI, too: it shows the choices and how to tune for them.
#[test]
fn processes_of_an_mpi_have_wisdom_for_each_shape() {
    let place = Place::new();
    let page = place.run("explain all_reduce --pes 4 --fabric mpi:2").succeeds().out;
    assert!(page.contains("two_level") && says(&page, "tune --fabric mpi:2 --pes 4"), "{page}");
    place.run("tune --fabric mpi").misused("give the number of PEs of your programs with --pes");
    place.run("tune --fabric mpi:2 --pes 3").misused("it must be a multiple of 2");
}

/// The name matches that of `consort tune`, which knows where the PEs are started.
#[test]
fn mixture_on_one_machine_is_named_by_its_fabric() {
    let place = Place::new();
    for (options, text) in [
        ("--fabric mixed:2x1 --pes 2", "2 PEs of --fabric mixed:2x1 are processes"),
        ("--fabric mixed:4x2 --pes 8", "8 PEs of --fabric mixed:4x2 are processes"),
        ("--fabric mixed:1x2 --pes 4", "4 PEs of --fabric mixed:1x2 are mpi:2"),
    ] {
        let explained = place.run(&format!("explain barrier {options}")).succeeds();
        assert!(explained.err.contains(text), "{options}: {}", explained.err);
        assert!(!says(&explained.out, "--fabric mixed"), "{options}: {}", explained.out);
    }
    let explained = place.run("explain barrier --fabric mixed:2x1").succeeds();
    assert!(explained.out.starts_with("barrier of 4 PEs") && explained.err.is_empty());
}

/// Measured queries, kept ones, and those of other calls add up to all measured queries.
#[test]
fn the_counts_of_a_run_add_up() {
    let place = Place::tuned();
    let tuned = place.run("tune --collective barrier --pes 3 --budget 4").succeeds().out;
    assert!(says(&tuned, "Queries measured: 1 in") && !tuned.contains("kept"), "{tuned}");
    assert!(says(&tuned, "queries: 2 measured (1 of them of other calls), 0 estimated"), "{tuned}");
    place.decide();
    let tuned = place.run("tune --collective barrier --pes 2,3 --budget 4").succeeds().out;
    assert!(says(&tuned, "2 kept from before") && !says(&tuned, "queries: 2"), "{tuned}");
    let place = Place::new();
    let tuned = place.run("tune --rigour estimate --collective broadcast --pes 4").succeeds().out;
    assert!(!tuned.contains("kept") && says(&tuned, "queries: 0 measured, "), "{tuned}");
}
