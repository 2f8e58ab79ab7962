//! Runs the commands of the applications in their tests.

use std::{
    env,
    path::Path,
    process::{Command, Output},
};

/// The launcher for the script `compare` that starts an application as threads, in place of
/// `mpirun`.
const THREADS: &str = r#"bash -c 'exec "$0" -n {pes} "$@"'"#;

/// The command of an application, by its path.
#[derive(Clone, Copy, Debug)]
pub struct Application(pub &'static str);

/// How a command ended: whether it succeeded, its stdout and its stderr.
pub type Ended = (bool, [String; 2]);

fn ended(command: &mut Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.success(), [text(stdout), text(stderr)])
}

impl Application {
    fn name(self) -> &'static str {
        let name = Path::new(self.0).file_name().and_then(|name| name.to_str());
        name.expect("a program")
    }

    /// Runs the command in a folder.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn run(self, arguments: &[&str], folder: &Path) -> Ended {
        ended(Command::new(self.0).args(arguments).current_dir(folder))
    }

    /// Returns the examples in a text: the launcher of each, and its arguments. Text after two
    /// spaces is a comment.
    fn examples<'t>(self, text: &'t str) -> Vec<(Vec<&'t str>, Vec<&'t str>)> {
        let example = |line: &'t str| {
            let words: Vec<_> = line.trim_start().split("  ").next()?.split(' ').collect();
            let ends_so = |word: &&str| Path::new(word).file_name() == Some(self.name().as_ref());
            let at = words.iter().position(ends_so)?;
            Some((words[..at].to_vec(), words[at + 1..].to_vec()))
        };
        text.lines().filter_map(example).collect()
    }

    /// Runs each example of the help once, with smaller values of some options. Examples with a
    /// launcher, and those of `readme`, are only parsed.
    ///
    /// # Panics
    /// When an example fails, or there are none.
    pub fn try_examples(self, smaller: &[(&str, &str)], readme: &str, folder: &Path) {
        let (_, [help, _]) = self.run(&["--help"], folder);
        let (_, shown) = help.split_once("Examples:").expect("examples in the help");
        let shown = self.examples(shown);
        assert!(shown.len() > 3, "{help}");
        for (launcher, arguments) in &shown {
            if launcher.is_empty() {
                let mut arguments = arguments.clone();
                for (option, value) in smaller {
                    let at = arguments.iter().position(|word| word == option);
                    if let Some(at) = at {
                        arguments[at + 1] = value;
                    }
                }
                arguments.extend(["--repeat", "1"]);
                let (done, [_, error]) = self.run(&arguments, folder);
                assert!(done, "{arguments:?}: {error}");
            }
        }
        for (_, mut arguments) in shown.into_iter().chain(self.examples(readme)) {
            arguments.push("--help");
            let (done, [_, error]) = self.run(&arguments, folder);
            assert!(done, "{arguments:?}: {error}");
        }
    }

    /// Runs the script `compare` once on 2 PEs that are threads, with further options. It uses the
    /// application that is already built, and no peer.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn compare(self, peer: &str, options: &[&str], folder: &Path) -> Ended {
        let programs = Path::new(self.0).parent().expect("the folder of the program");
        let mut command = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../compare"));
        command.arg(self.name()).arg("--programs").arg(programs).arg("--folder").arg(folder);
        command.args(["--without", peer, "--launcher", THREADS, "--pes", "2"]);
        ended(command.args(["--rounds", "1", "--repeat", "1"]).args(options))
    }
}

#[cfg(test)]
mod tests {
    use super::{Application, Command, ended};

    #[test]
    fn examples_are_found_with_their_launchers() {
        let text = "\
Examples:
  sum -n 4 --check  four threads
  consort run -n 4 /a/sum --size 9
Nothing is summed.";
        let found = Application("/target/sum").examples(text);
        let launched = ["consort", "run", "-n", "4"];
        let expected =
            [(vec![], vec!["-n", "4", "--check"]), (launched.to_vec(), vec!["--size", "9"])];
        assert_eq!(found, expected);
    }

    /// Checks what the script `compare` prints without an application: its help, and errors about
    /// options.
    #[test]
    fn compare_prints_help_and_refuses_bad_options() {
        let compare = |options: &[&str]| {
            ended(Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../compare")).args(options))
        };
        let (done, [help, error]) = compare(&["--help"]);
        assert!(done && help.contains("--launcher") && help.contains("examples:"), "{error}");
        for (options, complaint) in [
            (&["lu"][..], "unknown application lu: expected summa, cholesky or ft"),
            (&["--without", "lapack"], "unknown peer lapack: expected pdgemm, pdpotrf or fftw_mpi"),
            (&["--launcher", "mpirun"], "--launcher must contain {pes}"),
            (&["--pes", "two"], "--pes"),
            (&["--programs", "/nowhere", "--folder", "/tmp"], "summa is not in /nowhere"),
        ] {
            let (done, [_, error]) = compare(options);
            assert!(!done && error.contains(complaint), "{options:?}: {error}");
        }
    }
}
