//! `consort cc` and `consort c++`: a compiler, told where the OpenSHMEM library is.
//!
//! Build systems ask such wrappers what they add, by the options of those of MPI: `-show` and
//! `--showme` for the whole command, `--showme:compile` and `--showme:link` for a part.

use std::{
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use anyhow::{Result, bail};
use clap::Args;

use crate::{
    c_library::{CLibrary, SYSTEM, compiler_of, not_started},
    output,
};

/// The examples of `consort cc`.
pub(crate) const EXAMPLES: &str = "\
Examples:
  consort cc program.c -o program     compile and link
  consort run -n 4 ./program          and run it
  consort cc -O2 -c part.c            compile only
  consort cc --show program.c -o it   show what would be run
  consort cc --showme:compile         what compiling adds (--showme:link)

The arguments are the compiler's, which is that of CC, or else cc.";

/// Those of `consort c++`.
pub(crate) const EXAMPLES_CXX: &str = "\
Examples:
  consort c++ program.cpp -o program     compile and link
  consort run -n 4 ./program             and run it
  consort c++ -O2 -c part.cpp            compile only
  consort c++ --show program.cpp -o it   show what would be run
  consort c++ --showme:compile           what compiling adds (--showme:link)

The arguments are the compiler's, which is that of CXX, or else c++.";

/// The options of compilers that do not link.
const UNLINKED: [&str; 7] = ["-c", "-S", "-E", "-M", "-MM", "-r", "-fsyntax-only"];

/// Leaves out of a program what it does not use of the library. Options of the program's own come
/// later, and may take that back.
const SMALL: &str = "-Wl,--gc-sections";

/// In which language a program is.
#[derive(Clone, Copy)]
pub(crate) enum Language {
    C,
    Cxx,
}

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

/// What is shown instead of being run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    Command,
    Compiling,
    Linking,
}

impl Shown {
    /// By an option.
    fn of(argument: &OsStr) -> Option<Self> {
        let argument = argument.to_str()?;
        match argument.strip_prefix("--").or_else(|| argument.strip_prefix('-'))? {
            "show" | "showme" => Some(Self::Command),
            "showme:compile" | "compile-info" | "compile_info" => Some(Self::Compiling),
            "showme:link" | "link-info" | "link_info" => Some(Self::Linking),
            _ => None,
        }
    }
}

impl Cc {
    /// Runs the command.
    pub(crate) fn run(mut self, language: Language) -> Result<ExitCode> {
        let (variable, default) = match language {
            Language::C => ("CC", "cc"),
            Language::Cxx => ("CXX", "c++"),
        };
        let compiler = compiler_of(variable)?;
        // As in make, a variable may have options behind the compiler.
        let mut words = compiler.split_whitespace().map(OsStr::new);
        let program = words.next().unwrap_or(OsStr::new(default));
        let library = CLibrary::find()?;
        let mut shown = self.show.then_some(Shown::Command);
        self.arguments.retain(|argument| {
            let option = Shown::of(argument);
            shown = shown.or(option);
            option.is_none()
        });
        let compiling = [OsStr::new("-I"), library.include.as_os_str()];
        let linking = || std::iter::once(library.archive.as_os_str()).chain(SYSTEM.map(OsStr::new));
        let is_linked = links(&self.arguments) || shown.is_some() && self.arguments.is_empty();
        let mut command = Command::new(program);
        command.args(words).args(compiling);
        command.args(is_linked.then_some(SMALL)).args(&self.arguments);
        if is_linked {
            command.args(linking());
        }
        let shown: Vec<&OsStr> = match shown {
            Some(Shown::Command) => {
                std::iter::once(command.get_program()).chain(command.get_args()).collect()
            }
            Some(Shown::Compiling) => compiling.to_vec(),
            Some(Shown::Linking) => std::iter::once(OsStr::new(SMALL)).chain(linking()).collect(),
            None => {
                let error = command.exec();
                bail!("{}", not_started(&program.to_string_lossy(), &error));
            }
        };
        let words: Vec<String> = shown.into_iter().map(output::quoted).collect();
        output::print(&(words.join(" ") + "\n"))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Whether a compiler links with these arguments. It does not if there is nothing to link, as when
/// it is asked for its version.
fn links(arguments: &[OsString]) -> bool {
    let is_input = |argument: &OsString| {
        let bytes = argument.as_encoded_bytes();
        !bytes.starts_with(b"-") || bytes == b"-" || bytes.starts_with(b"-l")
    };
    let is_unlinked = |argument: &OsString| UNLINKED.iter().any(|option| argument == option);
    arguments.iter().any(is_input) && !arguments.iter().any(is_unlinked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_linked_has_inputs() {
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
}
