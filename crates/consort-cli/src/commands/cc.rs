//! `consort cc` and `consort c++`: a compiler with the options for the OpenSHMEM library.
//!
//! Build systems query such wrappers with the options of MPI wrappers: `-show` and `--showme` for
//! the whole command, `--showme:compile`, `--showme:link` and others for a part.

use std::{
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use anyhow::Result;
use clap::Args;

use crate::{
    c_library::{SHMEM, SYSTEM},
    compiler::{Compiler, Language},
};
use consort_console::output;

/// The examples of `consort cc`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  consort cc program.c -o program     compile and link
  consort run -n 4 ./program          and run it
  consort cc -O2 -c part.c            compile only
  consort cc --show program.c -o it   show what would be run
  consort cc --showme:compile         what compiling adds (--showme:link)

The arguments are the compiler's: the one that CONSORT_CC names, or else the
one that `consort install` has recorded, or else cc. CC is not read, since it
may name oshcc.";

/// The examples of `consort c++`.
pub(crate) const EXAMPLES_CXX: &str = "\
Examples:
  consort c++ program.cpp -o program     compile and link
  consort run -n 4 ./program             and run it
  consort c++ -O2 -c part.cpp            compile only
  consort c++ --show program.cpp -o it   show what would be run
  consort c++ --showme:compile           what compiling adds (--showme:link)

The arguments are the compiler's: the one that CONSORT_CXX names, or else the
one that `consort install` has recorded, or else c++. CXX is not read, since
it may name oshc++.";

/// The compiler options that prevent linking.
const UNLINKED: [&str; 7] = ["-c", "-S", "-E", "-M", "-MM", "-r", "-fsyntax-only"];

/// Omits unused parts of the library from a program, and keeps a shared library that contains it
/// loaded, because there is work to do when the process ends. The program's own options come later,
/// and may override this.
const LINKER: &str = "-Wl,--gc-sections,-z,nodelete";

/// The compiler's arguments
#[derive(Args)]
pub(crate) struct Cc {
    /// Print the compiler's command instead of running it
    #[arg(long)]
    show: bool,
    /// The compiler's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required_unless_present = "show")]
    arguments: Vec<OsString>,
}

/// The part that is shown instead of being run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShownPart {
    Command,
    Compiling,
    Linking,
    Compiler,
    IncludeFolders,
    LibraryFolders,
    Libraries,
    Version,
}

impl ShownPart {
    /// Returns the part that an option selects.
    fn of(argument: &OsStr) -> Option<Self> {
        let argument = argument.to_str()?;
        match argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))? {
            "show" | "showme" => Some(Self::Command),
            "showme:compile" | "compile-info" | "compile_info" => Some(Self::Compiling),
            "showme:link" | "link-info" | "link_info" => Some(Self::Linking),
            "showme:command" => Some(Self::Compiler),
            "showme:incdirs" => Some(Self::IncludeFolders),
            "showme:libdirs" => Some(Self::LibraryFolders),
            "showme:libs" => Some(Self::Libraries),
            "showme:version" => Some(Self::Version),
            _ => None,
        }
    }
}

impl Cc {
    /// Runs the command.
    pub(crate) fn run(mut self, language: Language) -> Result<ExitCode> {
        let library = SHMEM.find()?;
        let compiler = Compiler::of_wrapper(language, library.folder())?;
        let mut shown = self.show.then_some(ShownPart::Command);
        self.arguments.retain(|argument| {
            let option = ShownPart::of(argument);
            shown = shown.or(option);
            option.is_none()
        });
        let compiling = [OsStr::new("-I"), library.include.as_os_str()];
        let linking = || std::iter::once(library.archive.as_os_str()).chain(SYSTEM.map(OsStr::new));
        let is_linked = links(&self.arguments) || shown.is_some() && self.arguments.is_empty();
        let mut command = compiler.command();
        command.args(compiling);
        command.args(is_linked.then_some(LINKER)).args(&self.arguments);
        if is_linked {
            command.args(ends_language(&self.arguments)).args(linking());
        }
        let words = |command: &Command| {
            let all = std::iter::once(command.get_program()).chain(command.get_args());
            all.map(OsStr::to_owned).collect()
        };
        let shown: Vec<OsString> = match shown {
            None => return Err(compiler.not_started(language, &command.exec())),
            Some(ShownPart::Command) => words(&command),
            Some(ShownPart::Compiler) => words(&compiler.command()),
            Some(ShownPart::Compiling) => compiling.map(OsStr::to_owned).to_vec(),
            Some(ShownPart::Linking) => {
                std::iter::once(OsStr::new(LINKER)).chain(linking()).map(OsStr::to_owned).collect()
            }
            Some(ShownPart::IncludeFolders) => vec![library.include.into_os_string()],
            Some(ShownPart::LibraryFolders) => vec![library.folder().as_os_str().to_owned()],
            Some(ShownPart::Libraries) => std::iter::once(SHMEM.name)
                .chain(SYSTEM.map(|option| option.trim_start_matches("-l")))
                .map(OsString::from)
                .collect(),
            Some(ShownPart::Version) => vec!["Consort".into(), env!("CARGO_PKG_VERSION").into()],
        };
        let words: Vec<String> = shown.iter().map(|word| output::quoted(word)).collect();
        output::print(&(words.join(" ") + "\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns whether a compiler links with these arguments. It does not if there is nothing to link,
/// as in a query for its version.
fn links(arguments: &[OsString]) -> bool {
    let is_input = |argument: &OsString| {
        let bytes = argument.as_encoded_bytes();
        !bytes.starts_with(b"-") || bytes == b"-" || bytes.starts_with(b"-l")
    };
    let is_unlinked = |argument: &OsString| UNLINKED.iter().any(|option| argument == option);
    arguments.iter().any(is_input) && !arguments.iter().any(is_unlinked)
}

/// Returns the option that ends `-x`, if the arguments contain it: otherwise the compiler would
/// take the library for a source file of that language.
fn ends_language(arguments: &[OsString]) -> &'static [&'static str] {
    let names_language = |argument: &OsString| {
        let bytes = argument.as_encoded_bytes();
        bytes.starts_with(b"-x") || bytes == b"--language" || bytes.starts_with(b"--language=")
    };
    if arguments.iter().any(names_language) { &["-x", "none"] } else { &[] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_step_is_found_by_its_inputs() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (text, is_linked) in [
            ("a.c", true),
            ("a.c -o a", true),
            ("-O2 -x c -", true),
            ("-c a.c", false),
            ("--version", false),
            ("-v", false),
        ] {
            assert_eq!(links(&words(text)), is_linked, "{text}");
        }
    }

    #[test]
    fn library_is_not_taken_for_a_source_file() {
        let words = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        for (text, names_language) in [
            ("-x c -", true),
            ("-xc++ a.cu", true),
            ("--language=c a.inc", true),
            ("a.c -o x", false),
        ] {
            assert_eq!(!ends_language(&words(text)).is_empty(), names_language, "{text}");
        }
    }
}
