//! `consort cc` and `consort c++`: a compiler, told where the OpenSHMEM library is.

use std::{
    env,
    ffi::{OsStr, OsString},
    os::unix::process::CommandExt as _,
    process::{Command, ExitCode},
};

use anyhow::{Result, bail};
use clap::Args;

use crate::c_library::{CLibrary, SYSTEM, not_started};

const EXAMPLES: &str = "\
Examples:
  consort cc prog.c -o prog             compile and link; then consort run -n 4 ./prog
  consort cc -O2 -c part.c              compile only
  consort cc --show prog.c -o prog      show what would be run

The arguments are the compiler's, which is that of CC (for C++, that of CXX) or else cc (c++).";

/// The options of compilers that do not link.
const UNLINKED: [&str; 6] = ["-c", "-S", "-E", "-M", "-MM", "-fsyntax-only"];

/// In which language a program is.
#[derive(Clone, Copy)]
pub(crate) enum Language {
    C,
    Cxx,
}

/// The compiler's arguments
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Cc {
    /// Print the compiler's command instead of running it
    #[arg(long)]
    show: bool,
    /// The compiler's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    arguments: Vec<OsString>,
}

impl Cc {
    /// Runs the command.
    pub(crate) fn run(self, language: Language) -> Result<ExitCode> {
        let (variable, default) = match language {
            Language::C => ("CC", "cc"),
            Language::Cxx => ("CXX", "c++"),
        };
        let compiler = env::var(variable).unwrap_or_default();
        // As in make, a variable may have options behind the compiler.
        let mut words = compiler.split_whitespace().map(OsStr::new);
        let program = words.next().unwrap_or(OsStr::new(default));
        let library = CLibrary::find()?;
        let mut command = Command::new(program);
        command.args(words).arg("-I").arg(&library.include).args(&self.arguments);
        let is_linked =
            !self.arguments.iter().any(|argument| UNLINKED.iter().any(|u| argument == u));
        if is_linked {
            command.arg(&library.archive).args(SYSTEM);
        }
        if self.show {
            let words = std::iter::once(command.get_program()).chain(command.get_args());
            let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
            println!("{}", words.join(" "));
            return Ok(ExitCode::SUCCESS);
        }
        let error = command.exec();
        bail!("{}", not_started(&program.to_string_lossy(), &error));
    }
}
