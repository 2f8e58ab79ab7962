//! Passes the commit of the build to the compiler as `CONSORT_COMMIT`. It is the commit of the
//! repository whose folder `crates` contains this package, or that in the package's record if the
//! package is from a registry.
//!
//! Cargo runs it again only after another commit or checkout, and compiles again only if the commit
//! differs. Uncommitted changes are not reported.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The number of digits of a commit that are kept.
const DIGITS: usize = 12;

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
    let commit = of_registry(&package).or_else(|| of_repository(&package.join("../..")));
    let commit =
        commit.filter(|id| id.len() >= DIGITS && id.bytes().all(|b| b.is_ascii_hexdigit()));
    let commit = commit.map_or("unknown".to_owned(), |id| id[..DIGITS].to_owned());
    println!("cargo::rustc-env=CONSORT_COMMIT={commit}");
}

/// Returns the commit that `cargo package` has recorded.
fn of_registry(package: &Path) -> Option<String> {
    let text = fs::read_to_string(package.join(".cargo_vcs_info.json")).ok()?;
    let (_, rest) = text.split_once("\"sha1\": \"")?;
    rest.split('"').next().map(str::to_owned)
}

/// Returns the commit that is checked out in the working tree `root`.
fn of_repository(root: &Path) -> Option<String> {
    let git = root.join(".git");
    // An additional working tree has a file there, which names its folder.
    let named = fs::read_to_string(&git).ok();
    let own = named.and_then(|text| Some(root.join(text.trim().strip_prefix("gitdir: ")?)));
    let own = own.unwrap_or(git);
    let shared = fs::read_to_string(own.join("commondir"));
    let shared = shared.map_or(own.clone(), |text| own.join(text.trim()));
    let head = watched(&own.join("HEAD"))?;
    let Some(name) = head.strip_prefix("ref: ") else { return Some(head) };
    // Each commit adds a line there, even on a branch that does not have a file yet.
    watched(&own.join("logs/HEAD"));
    let packed = watched(&shared.join("packed-refs")).unwrap_or_default();
    let of_line = |line: &str| Some(line.strip_suffix(name)?.trim_end().to_owned());
    watched(&shared.join(name)).or_else(|| packed.lines().find_map(of_line))
}

/// Returns the text of a file; the script runs again when it changes. A missing file must not be
/// declared, or the script would run every time.
fn watched(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text.trim().to_owned())
}
