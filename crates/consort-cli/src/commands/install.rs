//! `consort install`: the command, the OpenSHMEM library, its headers and wrappers, in a folder.

use std::{
    env, fs, io,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{self, Command, Stdio},
};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::c_library::{ARCHIVE, CLibrary, HEADERS, SYSTEM, compiler_of, not_started};

const EXAMPLES: &str = "\
Examples:
  consort install --prefix /opt/consort   then /opt/consort/bin/oshcc prog.c

The folder gets bin/ (consort, oshcc, oshc++, oshrun), include/ (shmem.h,
shmemx.h), lib/ (libconsort_shmem.a and .so) and lib/pkgconfig/. It may be
moved. The shared library is linked by the compiler of CC, or cc.";

/// What the shared library exports.
const EXPORTS: &str = "{ global: shmem_*; shmemx_*; pshmem_*; start_pes; _my_pe; _num_pes; \
                       shmalloc; shfree; shrealloc; shmemalign; local: *; };\n";

/// The wrappers, each a script that runs the command beside it.
const WRAPPERS: [(&str, &str); 3] = [
    ("oshcc", "exec \"$consort\" cc \"$@\""),
    ("oshc++", "exec \"$consort\" c++ \"$@\""),
    ("oshrun", "exec \"$consort\" run \"$@\""),
];

/// Install the command and the OpenSHMEM library, for C and C++
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Install {
    /// The folder, which is made if there is none
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
}

impl Install {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<()> {
        let library = CLibrary::find()?;
        let [bin, include, lib] = ["bin", "include", "lib"].map(|name| self.prefix.join(name));
        let packages = lib.join("pkgconfig");
        for folder in [&bin, &include.join("mpp"), &packages] {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        copy(&env::current_exe()?, &bin.join("consort"))?;
        let archive = lib.join(ARCHIVE);
        copy_archive(&library.archive, &archive)?;
        for header in HEADERS {
            copy(&library.include.join(header), &include.join(header))?;
        }
        for (name, what) in WRAPPERS {
            let script = bin.join(name);
            replace(&script, |new| {
                fs::write(new, wrapper(what))?;
                fs::set_permissions(new, fs::Permissions::from_mode(0o755))
            })?;
        }
        write(&packages.join("consort-shmem.pc"), &package())?;
        share(&archive, &lib)?;
        println!("installed in {}: bin, include, lib", self.prefix.display());
        Ok(())
    }
}

/// Copies a file, unless it is the same one. Others see the one that was there, or all of the new
/// one: it may be what runs.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let place = |path: &Path| fs::metadata(path).ok().map(|about| (about.dev(), about.ino()));
    if place(from) == place(to) {
        return Ok(());
    }
    replace(to, |new| fs::copy(from, new).map(drop))
}

/// Makes a file under another name in the same folder, and moves it to its place.
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

/// Copies the archive without what only a debugger reads, which is most of it and would be in every
/// program. Where no tool removes that, it is copied as it is.
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

fn wrapper(what: &str) -> String {
    format!("#!/bin/sh\nconsort=$(dirname \"$(readlink -f \"$0\")\")/consort\n{what}\n")
}

fn package() -> String {
    format!(
        "prefix=${{pcfiledir}}/../..\n\
         Name: consort-shmem\n\
         Description: OpenSHMEM 1.6 over Consort\n\
         Version: {}\n\
         Cflags: -I${{prefix}}/include\n\
         Libs: -L${{prefix}}/lib -Wl,-rpath,${{prefix}}/lib -lconsort_shmem\n\
         Libs.private: {}\n",
        env!("CARGO_PKG_VERSION"),
        SYSTEM.join(" "),
    )
}

/// Makes the shared library of the archive. Weak aliases would be lost if Rust made it.
fn share(archive: &Path, lib: &Path) -> Result<()> {
    let script = lib.join("consort_shmem.exports");
    write(&script, EXPORTS)?;
    let compiler = compiler_of("CC")?;
    let mut words = compiler.split_whitespace();
    let program = words.next().unwrap_or("cc");
    let option = |name: &str, value: &Path| {
        let mut text = std::ffi::OsString::from(name);
        text.push(value);
        text
    };
    let status = Command::new(program)
        .args(words)
        .args(["-shared", "-Wl,-soname,libconsort_shmem.so", "-o"])
        .arg(lib.join("libconsort_shmem.so"))
        .arg("-Wl,--whole-archive")
        .arg(archive)
        .arg("-Wl,--no-whole-archive")
        .arg(option("-Wl,--version-script=", &script))
        .args(SYSTEM)
        .status()
        .map_err(|error| anyhow::anyhow!(not_started(program, &error)))?;
    fs::remove_file(&script)?;
    if !status.success() {
        bail!("`{program}` could not link libconsort_shmem.so: {status}");
    }
    Ok(())
}
