//! Gives each test program a separate home and environment.
//!
//! A test program that links this crate (`use consort_sandbox as _;`) gets, before `main` begins,
//!
//! - a new folder, which is its home and contains its configuration, caches and temporary files;
//! - an environment without variables of Consort or OpenSHMEM, except those that `TEST_ENV` names.
//!
//! Variables that control testing, such as `TEST_SEED`, begin with `TEST_` and stay. `TEST_ENV`
//! contains assignments, separated by blanks: `TEST_ENV="CONSORT_SEGMENT=shared"` runs the tests
//! with that variable.
//!
//! So no test reads or writes the user's wisdom, recorded calls or caches. Programs that a test
//! starts inherit the environment, with the test's additions. The program that created the folder
//! removes it at its end.

#![expect(
    unsafe_code,
    reason = "changes the environment, runs functions before and after `main`, \
                                 and forks"
)]

pub mod children;
pub mod commands;
pub mod plugins;
#[cfg(target_os = "linux")]
pub mod refusals;
pub mod seeds;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::OnceLock,
};

/// The variable that names the folder of a test program for the programs that it starts.
const SANDBOX: &str = "CONSORT_SANDBOX";

/// The prefixes of variables that configure the tested library.
const PREFIXES: [&str; 3] = ["CONSORT_", "SHMEM_", "SMA_"];

/// The variable with assignments for the tests.
const ASSIGNMENTS: &str = "TEST_ENV";

/// The folder that this process has created, and the process: a fork is another one.
static MADE: OnceLock<(PathBuf, u32)> = OnceLock::new();

/// Returns the parts of a user's environment, as folders inside a folder.
fn places(folder: &Path) -> [(&'static str, PathBuf); 6] {
    [
        ("HOME", folder.to_path_buf()),
        ("XDG_CONFIG_HOME", folder.join(".config")),
        ("XDG_CACHE_HOME", folder.join(".cache")),
        ("XDG_DATA_HOME", folder.join(".local/share")),
        ("XDG_STATE_HOME", folder.join(".local/state")),
        ("TMPDIR", folder.join("tmp")),
    ]
}

fn is_foreign(name: &str) -> bool {
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Keeps the folders that `rustup` and `cargo` use in the user's home, for tests that run `cargo`.
fn keep_toolchain() {
    let Some(home) = env::home_dir() else { return };
    for (name, folder) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        if env::var_os(name).is_none() {
            // SAFETY: no other thread runs before `main`.
            unsafe { env::set_var(name, home.join(folder)) };
        }
    }
}

/// Returns the path of a file that cargo has built next to a program of the workspace, such as
/// `libconsort_shmem.a` or an example.
///
/// # Panics
/// When it does not exist: cargo builds only the programs of a test's own package before the test.
pub fn built(program: &str, name: &str) -> PathBuf {
    let path = Path::new(program).with_file_name(name);
    assert!(
        path.exists(),
        "{} is missing: run `cargo build --workspace --lib --bins --examples --tests` before this test",
        path.display()
    );
    path
}

#[ctor::ctor(unsafe)]
fn enter() {
    if env::var_os(SANDBOX).is_some() {
        return;
    }
    let made = tempfile::Builder::new().prefix("consort-test-").tempdir();
    let folder = match made {
        Ok(made) => made.keep(),
        Err(error) => {
            eprintln!("the temporary folder of this test program cannot be made: {error}");
            process::exit(1);
        }
    };
    keep_toolchain();
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_foreign) {
            // SAFETY: no other thread runs before `main`.
            unsafe { env::remove_var(name) };
        }
    }
    let assignments = env::var(ASSIGNMENTS).unwrap_or_default();
    for assignment in assignments.split_whitespace() {
        let Some((name, value)) = assignment.split_once('=') else {
            eprintln!("{ASSIGNMENTS}: `{assignment}` assigns nothing: write NAME=VALUE");
            process::exit(1);
        };
        // SAFETY: no other thread runs before `main`.
        unsafe { env::set_var(name, value) };
    }
    for (name, path) in places(&folder) {
        if let Err(error) = fs::create_dir_all(&path) {
            eprintln!("{} cannot be made: {error}", path.display());
            process::exit(1);
        }
        // SAFETY: no other thread runs before `main`.
        unsafe { env::set_var(name, path) };
    }
    // SAFETY: no other thread runs before `main`.
    unsafe { env::set_var(SANDBOX, &folder) };
    let _ = MADE.set((folder, process::id()));
}

#[dtor::dtor(unsafe)]
fn leave() {
    if let Some((folder, maker)) = MADE.get()
        && *maker == process::id()
    {
        // A test may have left a file that cannot be removed. The folder is temporary anyway.
        let _ = fs::remove_dir_all(folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The variable that makes the next test print its environment.
    const ASKED: &str = "SAY_ENVIRONMENT";

    #[test]
    fn say_environment() {
        if env::var_os(ASKED).is_none() {
            return;
        }
        let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let mut foreign: Vec<_> =
            names.filter(|name| is_foreign(name) && name != SANDBOX).collect();
        foreign.sort();
        println!("foreign: {foreign:?}");
        for (name, _) in places(Path::new("")) {
            println!("{name}: {}", env::var(name).expect("it is set"));
        }
    }

    /// Returns the output of a test program that begins in a hostile environment.
    fn said(hostile: &Path, sandbox: Option<&Path>) -> String {
        let mut program = Command::new(env::current_exe().expect("this program"));
        program.args(["--exact", "--nocapture", "tests::say_environment"]).env(ASKED, "");
        for (name, path) in places(hostile) {
            program.env(name, path);
        }
        // The temporary folder must exist.
        program.env("TMPDIR", hostile).env_remove(SANDBOX).envs(sandbox.map(|it| (SANDBOX, it)));
        program.env("CONSORT_WISDOM", hostile).env("SHMEM_SYMMETRIC_SIZE", "rubbish");
        program.env(ASSIGNMENTS, "SMA_VERSION=1 SMA_INFO=1");
        let output = program.output().expect("this program starts");
        String::from_utf8(output.stdout).expect("text")
    }

    #[test]
    fn user_environment_is_not_seen_and_folder_is_removed() {
        let hostile = tempfile::tempdir().expect("a folder");
        let said = said(hostile.path(), None);
        assert!(said.contains("foreign: [\"SMA_INFO\", \"SMA_VERSION\"]"), "{said}");
        let home =
            said.lines().find_map(|line| line.strip_prefix("HOME: ")).expect("it has a home");
        let home = Path::new(home);
        for (name, path) in places(home) {
            assert!(said.contains(&format!("{name}: {}\n", path.display())), "{said}");
        }
        assert_ne!(home, hostile.path());
        assert!(!home.exists(), "{} remains", home.display());
        let left = fs::read_dir(hostile.path()).expect("the folder is there").count();
        assert_eq!(left, 0, "something was written to the user's home");
    }

    /// Tests also set variables for programs that link this crate.
    #[test]
    fn programs_that_a_test_starts_keep_what_it_sets() {
        let hostile = tempfile::tempdir().expect("a folder");
        let said = said(hostile.path(), Some(hostile.path()));
        assert!(said.contains("\"CONSORT_WISDOM\""), "{said}");
        assert!(said.contains(&format!("HOME: {}\n", hostile.path().display())), "{said}");
        assert!(hostile.path().exists());
    }
}
