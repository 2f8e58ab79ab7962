//! The library and its header: compilers accept the header, it declares what the library exports,
//! and programs in C and C++ get the right results and errors. The programs are next to this file.

use consort_sandbox as _;

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use tempfile::TempDir;

const HEADER: &str = include_str!("../../include/consort.h");

fn in_crate(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the path of the library next to this test.
fn archive() -> PathBuf {
    let test = env::current_exe().expect("a test");
    let files = fs::read_dir(test.parent().expect("a folder")).expect("its files");
    let archives = files.flatten().filter(|file| {
        let name = file.file_name().into_string().unwrap_or_default();
        name.starts_with("libconsort_c-") && name.ends_with(".a")
    });
    let newest = archives.max_by_key(|file| file.metadata().and_then(|of| of.modified()).ok());
    newest.expect("the library is built").path()
}

fn text(output: &Output) -> String {
    let [out, error] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    format!("{out}{error}")
}

/// Compiles a source with these options; all warnings are errors. Returns the program, in a folder
/// that lasts as long as the first value.
fn compiled(compiler: &str, options: &[&str], source: &Path) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    let mut command = Command::new(compiler);
    command.args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-O1"]).args(options);
    command.arg("-I").arg(in_crate("include")).arg(source).arg("-o").arg(&program);
    if !options.contains(&"-c") {
        command.arg(archive()).args(["-lpthread", "-ldl", "-lm"]);
    }
    let done = command.output().unwrap_or_else(|error| panic!("`{compiler}` is needed: {error}"));
    assert!(done.status.success(), "{compiler} {options:?}: {}", text(&done));
    (folder, program)
}

/// Compiles a program, checks that it succeeds in a minute, and returns its output.
fn said(compiler: &str, options: &[&str], source: &str, arguments: &[&str]) -> String {
    let (_folder, program) = compiled(compiler, options, &in_crate(source));
    let mut command = Command::new("timeout");
    let done = command.arg("60").arg(program).args(arguments).output().expect("a program");
    assert!(done.status.success(), "{source}: {}: {}", done.status, text(&done));
    text(&done)
}

/// Checks that a program of this folder succeeds, and prints nothing.
fn works(compiler: &str, options: &[&str], name: &str) {
    assert_eq!(said(compiler, options, &format!("tests/it/{name}"), &[]), "");
}

#[test]
fn compilers_accept_the_header() {
    let folder = tempfile::tempdir().expect("a folder");
    for (compiler, end, years) in [
        ("gcc", "c", &["c89", "c99", "c11", "c17", "c2x"][..]),
        ("g++", "cpp", &["c++98", "c++11", "c++17", "c++20"]),
    ] {
        let source = folder.path().join(format!("source.{end}"));
        fs::write(&source, "#include <consort.h>\nint main(void) { return CONSORT_OK; }\n")
            .expect("a source");
        for year in years {
            compiled(compiler, &[&format!("-std={year}"), "-c"], &source);
        }
    }
}

/// Returns the names of functions in a text: the words that begin with `consort_` and follow
/// `before`.
fn functions(text: &str, before: &str) -> BTreeSet<String> {
    let words = text.split(before).skip(1).map(|rest| {
        rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default()
    });
    words.filter(|word| word.starts_with("consort_")).map(str::to_owned).collect()
}

/// The names link, so the library exports each function that the header declares.
#[test]
fn header_declares_all_functions() {
    let mut declared = functions(HEADER, "\nint ");
    for before in ["\nvoid ", "\nconst char *", "\nconsort_team *"] {
        declared.append(&mut functions(HEADER, before));
    }
    let mut exported = BTreeSet::new();
    for file in fs::read_dir(in_crate("src")).expect("sources").flatten() {
        let source = fs::read_to_string(file.path()).expect("a source");
        exported.append(&mut functions(&source, "extern \"C\" fn "));
        exported.append(&mut functions(&source, "\ncollective!("));
    }
    assert_eq!(declared, exported);
    assert_eq!(declared.len(), 35);
    let folder = tempfile::tempdir().expect("a folder");
    let source = folder.path().join("all.c");
    let names: Vec<_> = declared.iter().map(|name| format!("(function){name}")).collect();
    let all = format!(
        "#include <consort.h>\ntypedef void (*function)(void);\nfunction all[] = {{{}}};\n\
         int main(void) {{ return all[0] == 0; }}\n",
        names.join(", ")
    );
    fs::write(&source, all).expect("a source");
    compiled("gcc", &["-Wno-cast-function-type"], &source);
}

#[test]
fn collectives_give_the_results_of_a_reference() {
    works("gcc", &["-std=c11", "-pthread"], "collectives.c");
}

#[test]
fn barriers_and_teams_work_in_c() {
    works("gcc", &["-std=c11", "-pthread"], "teams.c");
}

#[test]
fn creating_a_barrier_registers_a_process_with_one_thread() {
    works("gcc", &["-std=gnu11"], "fences.c");
}

#[test]
fn pools_run_regions() {
    works("gcc", &["-std=c11", "-pthread"], "pools.c");
}

#[test]
fn wrong_calls_return_errors() {
    works("gcc", &["-std=gnu11", "-pthread"], "misuse.c");
}

#[test]
fn cpp_programs_compile_and_work() {
    works("g++", &["-std=c++17", "-pthread"], "plus.cpp");
}

#[test]
fn examples_print_their_results() {
    let sum = said("gcc", &["-std=c99", "-pthread"], "examples/sum.c", &[]);
    assert_eq!(sum, "sum 6\n");
    // The example compares the vectors of each barrier with those of one thread.
    let graph = ["-std=gnu11", "-pthread", "-fopenmp"];
    let table = said("gcc", &graph, "examples/compute_graph.c", &["3", "2", "2"]);
    let rows: Vec<_> = table.lines().skip(1).map(|row| row.split("  ").next()).collect();
    let barriers = ["spin barrier", "pthread_barrier_wait", "OpenMP"].map(Some);
    assert_eq!(rows[..3], barriers, "{table}");
    assert_eq!(rows[3..], ["consort_barrier_wait", "consort_team_barrier"].map(Some), "{table}");
}
