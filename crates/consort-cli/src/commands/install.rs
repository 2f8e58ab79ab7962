//! `consort install`: the command, the OpenSHMEM library, its headers and wrappers, in a folder.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, bail};
use clap::Args;

use crate::c_library::{ARCHIVE, CLibrary, HEADERS, SYSTEM, not_started};

const EXAMPLES: &str = "\
Examples:
  consort install --prefix /opt/consort   then /opt/consort/bin/oshcc prog.c -o prog

The folder gets bin/ (consort, oshcc, oshc++, oshrun), include/ (shmem.h, shmemx.h), lib/
(libconsort_shmem.a and .so) and lib/pkgconfig/. It may be moved. The shared library is linked by
the compiler of CC, or cc.";

/// What the shared library exports.
const EXPORTS: &str = "{ global: shmem_*; shmemx_*; pshmem_*; start_pes; local: *; };\n";

/// The wrappers, each a script that runs the command beside it. As other launchers do, `oshrun`
/// takes `-np` for the number of PEs too.
const WRAPPERS: [(&str, &str); 3] = [
    ("oshcc", "exec \"$consort\" cc \"$@\""),
    ("oshc++", "exec \"$consort\" c++ \"$@\""),
    (
        "oshrun",
        "if test \"$1\" = -np; then shift; set -- -n \"$@\"; fi\nexec \"$consort\" run \"$@\"",
    ),
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
        for folder in [&bin, &include, &packages] {
            fs::create_dir_all(folder)
                .with_context(|| format!("cannot make {}", folder.display()))?;
        }
        copy(&env::current_exe()?, &bin.join("consort"))?;
        copy(&library.archive, &lib.join(ARCHIVE))?;
        for header in HEADERS {
            copy(&library.include.join(header), &include.join(header))?;
        }
        for (name, what) in WRAPPERS {
            let script = bin.join(name);
            write(&script, &wrapper(what))?;
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
        }
        write(&packages.join("consort-shmem.pc"), &package())?;
        share(&library.archive, &lib)?;
        println!("installed in {}: bin, include, lib", self.prefix.display());
        Ok(())
    }
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    // What runs cannot be written, but it can be replaced.
    drop(fs::remove_file(to));
    fs::copy(from, to).with_context(|| format!("cannot write {}", to.display())).map(drop)
}

fn write(to: &Path, text: &str) -> Result<()> {
    fs::write(to, text).with_context(|| format!("cannot write {}", to.display()))
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
         Libs: -L${{prefix}}/lib -Wl,-rpath,${{prefix}}/lib -lconsort_shmem\n",
        env!("CARGO_PKG_VERSION"),
    )
}

/// Makes the shared library of the archive. Weak aliases would be lost if Rust made it.
fn share(archive: &Path, lib: &Path) -> Result<()> {
    let script = lib.join("consort_shmem.exports");
    write(&script, EXPORTS)?;
    let compiler = env::var("CC").ok().filter(|text| !text.trim().is_empty());
    let compiler = compiler.unwrap_or_else(|| "cc".to_owned());
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
