//! `consort install`: puts the command, the libraries for C, their headers and wrappers in a folder.

mod packages;

use std::{
    env, fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::{
    c_library::{Library, SHMEM, SYSTEM, THREADS},
    compiler::{self, Compiler, Language},
};
use consort_console::output;

const EXAMPLES: &str = "\
Examples:
  consort install --prefix /opt/consort   then /opt/consort/bin/oshcc prog.c

The folder gets bin/ (consort, oshcc, oshc++, oshrun), include/ (consort.h,
shmem.h, shmemx.h), lib/ (libconsort and libconsort_shmem, each .a and .so),
lib/pkgconfig/ and lib/cmake/. Wrappers, libraries and packages of OpenSHMEM
also have their other usual names, such as oshcxx, liboshmem, libsma and
OpenSHMEM. The folder may be moved.

The wrappers will run the compilers that CONSORT_CC and CONSORT_CXX name now,
or else CC and CXX, or else cc and c++.";

/// The libraries, each with the exports of the shared one.
const LIBRARIES: [(Library, &str); 2] = [
    (
        SHMEM,
        "{ global: shmem_*; shmemx_*; pshmem_*; start_pes; _my_pe; _num_pes; shmalloc; shfree; \
         shrealloc; shmemalign; local: *; };\n",
    ),
    (THREADS, "{ global: consort_*; local: *; };\n"),
];

/// Other names of both OpenSHMEM libraries: those of Open MPI and Sandia OpenSHMEM, and plain ones.
const SHMEM_NAMES: [&str; 4] = ["liboshmem", "libsma", "libshmem", "libopenshmem"];

/// The subcommand of `consort` that each wrapper runs, in the order of `NAMES`.
const WRAPPERS: [&str; 3] = ["cc", "c++", "run"];

/// Install the command and the libraries for C and C++
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Install {
    /// The folder; created if missing
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
}

impl Install {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<()> {
        let found = LIBRARIES.map(|(library, exports)| Ok((library.find()?, library, exports)));
        let found = found.into_iter().collect::<Result<Vec<_>>>()?;
        let compiler = Compiler::of_installation(Language::C)?;
        let record = Compiler::record(&compiler, &Compiler::of_installation(Language::Cxx)?);
        let [bin, include, lib] = ["bin", "include", "lib"].map(|name| self.prefix.join(name));
        for folder in [&bin, &include.join("mpp"), &lib] {
            make_folder(folder)?;
        }
        let command = env::current_exe().context("cannot find the path of this command")?;
        copy(&command, &bin.join("consort"))?;
        write(&lib.join(compiler::RECORD), &record)?;
        for (files, library, exports) in found {
            let archive = lib.join(library.archive());
            copy_archive(&files.archive, &archive)?;
            share(&compiler, &archive, &format!("lib{}.so", library.name), exports)?;
            for header in library.headers {
                copy(&files.include.join(header), &include.join(header))?;
            }
        }
        for (command, names) in WRAPPERS.into_iter().zip(compiler::NAMES) {
            let [script, links @ ..] = names else { continue };
            replace(&bin.join(script), |new| {
                fs::write(new, wrapper(command))?;
                fs::set_permissions(new, fs::Permissions::from_mode(0o755))
            })?;
            for link in links {
                replace(&bin.join(link), |new| symlink(script, new))?;
            }
        }
        for name in SHMEM_NAMES {
            for end in ["a", "so"] {
                let library = format!("lib{}.{end}", SHMEM.name);
                replace(&lib.join(format!("{name}.{end}")), |new| symlink(library, new))?;
            }
        }
        for (path, text) in packages::files() {
            let path = lib.join(path);
            make_folder(path.parent().unwrap_or(&lib))?;
            write(&path, &text)?;
        }
        output::print(&format!("installed in {}: bin, include, lib\n", self.prefix.display()))
    }
}

fn make_folder(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Copies a file, unless it is the same one. Readers see the old file, or all of the new one,
/// because the old one may be running.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let place = |path: &Path| fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    if place(from) == place(to) {
        return Ok(());
    }
    replace(to, |new| fs::copy(from, new).map(drop))
}

/// Creates a file under another name in the same folder, and moves it to its place.
fn replace(to: &Path, make: impl FnOnce(&Path) -> io::Result<()>) -> Result<()> {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}", process::id()));
    let new = to.with_file_name(name);
    let made = make(&new).and_then(|()| fs::rename(&new, to));
    if made.is_err() {
        drop(fs::remove_file(&new));
    }
    made.with_context(|| format!("cannot write {}", to.display()))
}

/// Copies the archive without its debug information, which is most of its size and would be in
/// every program. If there is no `objcopy`, copies it unchanged.
fn copy_archive(from: &Path, to: &Path) -> Result<()> {
    let stripped = replace(to, |new| {
        let mut tool = Command::new("objcopy");
        let done = tool.arg("--strip-debug").args([from, new]).stderr(Stdio::null()).status()?;
        if done.success() { Ok(()) } else { Err(io::ErrorKind::Other.into()) }
    });
    stripped.or_else(|_| copy(from, to))
}

fn write(to: &Path, text: &str) -> Result<()> {
    replace(to, |new| fs::write(new, text))
}

/// Returns a script that runs the command in the same folder. If the script is run through a link,
/// `readlink` finds that folder. `$0` has no folder if a shell is started with the script's name.
fn wrapper(command: &str) -> String {
    format!(
        "#!/bin/sh\nat=$0\n[ ! -L \"$at\" ] || at=$(readlink -f \"$at\")\n\
         case $at in */*) ;; *) at=./$at ;; esac\n\
         exec \"${{at%/*}}/consort\" {command} \"$@\"\n"
    )
}

/// Links the shared library of this name from the archive, next to it. Rust would lose weak aliases.
/// The library stays loaded until the process ends, because it has work to do then.
fn share(compiler: &Compiler, archive: &Path, name: &str, exports: &str) -> Result<()> {
    let library = archive.with_file_name(name);
    let script = library.with_extension("exports");
    write(&script, exports)?;
    let mut version_script = std::ffi::OsString::from("-Wl,--version-script=");
    version_script.push(&script);
    let status = compiler
        .command()
        .arg("-shared")
        .arg(format!("-Wl,-soname,{name}"))
        .args(["-Wl,-z,nodelete", "-o"])
        .arg(&library)
        .arg("-Wl,--whole-archive")
        .arg(archive)
        .arg("-Wl,--no-whole-archive")
        .arg(version_script)
        .args(SYSTEM)
        .status();
    fs::remove_file(&script).with_context(|| format!("cannot remove {}", script.display()))?;
    let status = status.map_err(|error| compiler.not_started(Language::C, &error))?;
    if !status.success() {
        bail!("`{compiler}` could not link {name}: {status}");
    }
    Ok(())
}
