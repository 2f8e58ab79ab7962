//! The commands of the applications, as their tests run them.

use std::{
    env,
    path::Path,
    process::{Command, Output},
};

/// What starts an application as threads, where the script `compare` takes `mpirun`.
const THREADS: &str = r#"bash -c 'exec "$0" -n {pes} "$@"'"#;

/// The command of an application, by its path.
#[derive(Clone, Copy, Debug)]
pub struct Application(pub &'static str);

/// How a command has ended: whether it succeeded, its output and its errors.
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

    /// Runs it in a folder.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn run(self, arguments: &[&str], folder: &Path) -> Ended {
        ended(Command::new(self.0).args(arguments).current_dir(folder))
    }

    /// The examples in a text: what launches each of them, and its arguments. What follows two
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

    /// Runs the examples of the help, with smaller values of some options, once each. Those of a
    /// launcher and those of `readme` are only parsed.
    ///
    /// # Panics
    /// When one fails, or there are none.
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

    /// Runs the script `compare` on 2 PEs that are threads, once, with further options. The
    /// application is the one that is built, and there is no peer.
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

    /// What the script `compare` says without an application: its help, and what is wrong with
    /// options.
    #[test]
    fn compare_helps_and_refuses() {
        let compare = |options: &[&str]| {
            ended(Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../compare")).args(options))
        };
        let (done, [help, error]) = compare(&["--help"]);
        assert!(done && help.contains("--launcher") && help.contains("examples:"), "{error}");
        for (options, complaint) in [
            (&["lu"][..], "there is no application lu: summa, cholesky, ft"),
            (&["--without", "lapack"], "no peer lapack: pdgemm, pdpotrf, fftw_mpi"),
            (&["--launcher", "mpirun"], "--launcher needs {pes}"),
            (&["--pes", "two"], "--pes"),
            (&["--programs", "/nowhere", "--folder", "/tmp"], "there is no summa in /nowhere"),
        ] {
            let (done, [_, error]) = compare(options);
            assert!(!done && error.contains(complaint), "{options:?}: {error}");
        }
    }
}
