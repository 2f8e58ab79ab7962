//! Errors from starting a program, with advice.

use std::{fs, io, path::Path};

use consort_machine::{advice::advised, permissions::is_mounted_noexec};

/// Returns the text of an error from starting a program, with advice.
#[must_use]
pub fn start_error(program: &Path, error: &io::Error) -> String {
    match of_program(program, error) {
        Some(advice) => format!("{error}: {advice}"),
        None => advised(error),
    }
}

#[cfg(unix)]
fn of_program(program: &Path, error: &io::Error) -> Option<String> {
    use std::os::unix::fs::PermissionsExt as _;

    // A bare name is looked up in PATH. A file of that name here is a different one.
    program.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let about = fs::metadata(program).ok()?;
    let advice = match error.raw_os_error()? {
        libc::EACCES if about.is_dir() => "it is a directory: name a program",
        libc::EACCES if is_mounted_noexec(program) => {
            "its file system is mounted `noexec`, so programs cannot run from there: put it on \
             another one"
        }
        libc::EACCES if about.permissions().mode() & 0o111 == 0 => {
            "it may not be executed: `chmod +x` it, or name a program"
        }
        libc::ENOEXEC => {
            "it is neither a program for this machine nor a script that begins with `#!`"
        }
        libc::ENOENT => {
            "the file exists, but its interpreter or loader does not: see its `#!` line, or `ldd`"
        }
        libc::E2BIG => "the arguments and the environment are too long: shorten them",
        _ => return None,
    };
    Some(advice.to_owned())
}

#[cfg(not(unix))]
fn of_program(_: &Path, _: &io::Error) -> Option<String> {
    None
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use rustix::io::Errno;

    use super::*;

    #[test]
    fn errors_of_starting_a_program_say_why() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        for (program, errno, part) in [
            (folder.path(), Errno::ACCESS, "it is a directory"),
            (&file, Errno::ACCESS, "`chmod +x` it"),
            (&file, Errno::NOEXEC, "begins with `#!`"),
            (&file, Errno::NOENT, "its interpreter or loader does not"),
            (&file, Errno::AGAIN, "`ulimit -u`"),
            (&folder.path().join("none"), Errno::NOENT, "No such file"),
        ] {
            let text = start_error(program, &errno.into());
            assert!(text.contains(part), "`{part}` in {text}");
        }
        // A file of that name exists here too, but PATH was searched.
        let text = start_error(Path::new("Cargo.toml"), &Errno::NOENT.into());
        assert!(!text.contains("the file exists"), "{text}");
        // The file system of `/proc` is mounted so wherever it has the usual options.
        let text = start_error(Path::new("/proc/self/status"), &Errno::ACCESS.into());
        let is_noexec = is_mounted_noexec(Path::new("/proc/self/status"));
        assert_eq!(text.contains("mounted `noexec`"), is_noexec, "{text}");
    }
}
