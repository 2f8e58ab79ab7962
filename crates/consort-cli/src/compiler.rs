//! The compilers that the wrappers run.
//!
//! A wrapper never reads `CC` or `CXX`, because build systems set these to the wrapper itself. It
//! runs the compiler that `CONSORT_CC` or `CONSORT_CXX` names, or else the compiler that
//! `consort install` has recorded, or else `cc` or `c++`. Only `consort install` reads `CC` and
//! `CXX`.
//!
//! A wrapper sets `CONSORT_WRAPPED` for the compiler that it starts. A wrapper that finds this
//! variable set was started by another wrapper, as its compiler. It then ends with an error.

use std::{
    env,
    ffi::OsStr,
    fmt, io,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, anyhow, bail};
use consort_fabric::{
    environment::variable,
    files::{self, start_error},
};
use consort_mpi::find_program;

/// The names of the wrappers for C and C++ and of the launcher, as in other libraries. The first of
/// each is a script, and the others are links to it.
pub(crate) const NAMES: [&[&str]; 3] = [
    &["oshcc", "shmemcc"],
    &["oshc++", "oshcxx", "oshCC", "shmemc++", "shmemcxx", "shmemCC"],
    &["oshrun", "shmemrun"],
];

/// The file with the compilers in an installation's `lib`: a line for each language, with its name
/// and the words of the command line, separated by tabs.
pub(crate) const RECORD: &str = "consort_shmem.compilers";

/// The variable with the command line, set for a compiler that a wrapper runs.
const WRAPPED: &str = "CONSORT_WRAPPED";

/// The language of a program.
#[derive(Clone, Copy)]
pub(crate) enum Language {
    C,
    Cxx,
}

impl Language {
    /// Returns the variable of build systems, and the default command.
    fn usual(self) -> (&'static str, &'static str) {
        match self {
            Self::C => ("CC", "cc"),
            Self::Cxx => ("CXX", "c++"),
        }
    }

    /// Returns the variable that names the compiler for the wrappers.
    fn variable(self) -> &'static str {
        match self {
            Self::C => "CONSORT_CC",
            Self::Cxx => "CONSORT_CXX",
        }
    }
}

/// The command line of a compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Compiler(Vec<String>);

impl Compiler {
    /// Returns the compiler for a wrapper whose library is in the folder `lib`.
    ///
    /// # Errors
    /// When the only candidate is the wrapper itself, or the record cannot be read.
    pub(crate) fn of_wrapper(language: Language, lib: &Path) -> Result<Self> {
        if let Some(wrapped) = variable(WRAPPED) {
            bail!(
                "`{}` leads back to this wrapper, which would start itself forever: set {} to the \
                 compiler that it should run, such as gcc",
                wrapped.display(),
                language.variable()
            );
        }
        if let Some(named) = Self::named(language)? {
            return Ok(named);
        }
        let record = lib.join(RECORD);
        let recorded = match files::read_text(&record) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            read => {
                let text = read.with_context(|| format!("cannot read {}", record.display()))?;
                Self::recorded(language, &text)
            }
        };
        Ok(recorded.unwrap_or_else(|| Self::usual(language)))
    }

    /// Returns the compiler that `consort install` records.
    ///
    /// # Errors
    /// When a variable is not Unicode, or one of this project's variables names a wrapper.
    pub(crate) fn of_installation(language: Language) -> Result<Self> {
        let (usual, default) = language.usual();
        let found = match Self::named(language)? {
            Some(named) => Some(named),
            None => Self::of_variable(usual)?.filter(|given| {
                let is_wrapper = given.is_wrapper();
                if is_wrapper {
                    tracing::warn!(
                        "{usual} is `{given}`, which is an OpenSHMEM wrapper: the wrappers will \
                         run `{default}`; set {} to another compiler",
                        language.variable()
                    );
                }
                !is_wrapper
            }),
        };
        Ok(found.unwrap_or_else(|| Self::usual(language)).absolute())
    }

    /// Returns the lines of [`RECORD`].
    pub(crate) fn record(of_c: &Self, of_cxx: &Self) -> String {
        format!("C\t{}\nC++\t{}\n", of_c.0.join("\t"), of_cxx.0.join("\t"))
    }

    /// Returns the compiler of a language in the text of a [`RECORD`].
    fn recorded(language: Language, text: &str) -> Option<Self> {
        let name = match language {
            Language::C => "C\t",
            Language::Cxx => "C++\t",
        };
        let words = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(Self(words.split('\t').map(str::to_owned).collect()))
    }

    /// Returns the compiler that this project's variable names.
    fn named(language: Language) -> Result<Option<Self>> {
        let name = language.variable();
        let named = Self::of_variable(name)?;
        if let Some(wrapper) = named.as_ref().filter(|named| named.is_wrapper()) {
            bail!(
                "{name} is `{wrapper}`, which is an OpenSHMEM wrapper: set it to the compiler \
                 that the wrapper should run, such as gcc"
            );
        }
        Ok(named)
    }

    /// Returns the compiler that a variable names, followed by options, as in make.
    fn of_variable(name: &str) -> Result<Option<Self>> {
        let Some(value) = variable(name) else { return Ok(None) };
        let Some(text) = value.to_str() else {
            bail!("{name} is `{}`: name a compiler", value.display());
        };
        Ok(Some(Self(text.split_whitespace().map(str::to_owned).collect())))
    }

    fn usual(language: Language) -> Self {
        Self(vec![language.usual().1.to_owned()])
    }

    /// Makes the path of the program absolute, so that a later `PATH` does not change it.
    fn absolute(mut self) -> Self {
        let found = self.0.first().and_then(|program| find_program(Path::new(program)));
        let path = found.and_then(|found| {
            env::current_dir().ok()?.join(found).into_os_string().into_string().ok()
        });
        if let (Some(first), Some(path)) = (self.0.first_mut(), path)
            && !path.contains(['\t', '\n'])
        {
            *first = path;
        }
        self
    }

    /// Returns whether a program in the command line, as after `ccache`, is or links to a wrapper.
    fn is_wrapper(&self) -> bool {
        let programs = self.0.iter().take_while(|word| !word.starts_with('-'));
        programs.map(Path::new).any(|program| {
            let linked = find_program(program).and_then(|found| found.canonicalize().ok());
            [Some(PathBuf::from(program)), linked].into_iter().flatten().any(|path| {
                let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
                name == "consort" || NAMES.iter().any(|names| names.contains(&name))
            })
        })
    }

    /// Returns the command, without a program's arguments.
    pub(crate) fn command(&self) -> Command {
        let mut words = self.0.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command.args(words).env(WRAPPED, self.to_string());
        command
    }

    /// Returns the error for a compiler that could not be started.
    pub(crate) fn not_started(&self, language: Language, error: &io::Error) -> anyhow::Error {
        let program = self.0.first().map_or("", String::as_str);
        let why = start_error(Path::new(program), error);
        anyhow!("cannot start `{program}`: {why}; set {} to another compiler", language.variable())
    }
}

impl fmt::Display for Compiler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn compiler(text: &str) -> Compiler {
        Compiler(text.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn wrappers_are_recognized_behind_links_and_launchers() {
        let folder = tempfile::tempdir().expect("a folder");
        let [script, link] = ["oshc++", "mine"].map(|name| folder.path().join(name));
        fs::write(&script, "#!/bin/sh\n").expect("a script");
        std::os::unix::fs::symlink("oshc++", &link).expect("a link");
        let link = link.to_str().expect("a path of text").to_owned();
        let every = NAMES.into_iter().flatten().map(|name| (*name).to_owned());
        let others = ["./oshcc", "/opt/bin/oshcxx -O2", "ccache oshcc", "consort cc"];
        let others = others.into_iter().map(str::to_owned);
        for text in every.chain(others).chain([format!("ccache {link}"), link]) {
            assert!(compiler(&text).is_wrapper(), "{text}");
        }
        for text in ["cc", "gcc -I oshcc", "ccache clang-15", "/usr/bin/c++", "mpicc"] {
            assert!(!compiler(text).is_wrapper(), "{text}");
        }
    }

    #[test]
    fn record_has_both_languages() {
        let (of_c, of_cxx) = (compiler("ccache gcc -m64"), Compiler(vec!["/a b/c++".to_owned()]));
        let text = Compiler::record(&of_c, &of_cxx);
        assert_eq!(Compiler::recorded(Language::C, &text), Some(of_c));
        assert_eq!(Compiler::recorded(Language::Cxx, &text), Some(of_cxx));
        assert_eq!(Compiler::recorded(Language::C, ""), None);
    }
}
