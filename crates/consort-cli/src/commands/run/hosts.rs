//! The hosts of a job: a list of names, or a file in the format of other launchers.

use consort_console::{require, usage};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use consort_fabric::files;

/// Hosts over which processes are spread evenly.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Hosts {
    /// Their names, each once.
    pub(super) names: Vec<String>,
    /// The host with the fewest slots, and their number, if given.
    fewest: Option<(u32, String)>,
}

/// A host and its slots, if given.
type Entry = (String, Option<u32>);

impl Hosts {
    /// Reads `a,b` or `a:2,b:2`.
    pub(super) fn of_list(text: &str) -> Result<Self> {
        let entries = text.split(',').map(|word| {
            let known = entry(word.trim());
            known.ok_or_else(|| {
                usage::invalid_argument(format!(
                    "invalid host `{word}`: write them as in `a,b` or `a:2,b:2`"
                ))
            })
        });
        Self::of(entries.collect::<Result<_>>()?)
    }

    /// Reads a file with one host per line: `a`, `a:2` or `a slots=2`.
    pub(super) fn of_file(path: &Path) -> Result<Self> {
        let text = files::read_text(path).context("it cannot be read")?;
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let lines = (1..).zip(lines).filter(|(_, line)| !line.is_empty());
        let entries = lines.map(|(number, line)| {
            let known = of_line(line);
            known.with_context(|| {
                format!("line {number} is `{line}`: write `name`, `name:2` or `name slots=2`")
            })
        });
        Self::of(entries.collect::<Result<_>>()?)
    }

    /// Merges entries: each repetition of a host adds a slot.
    fn of(entries: Vec<Entry>) -> Result<Self> {
        let mut hosts: Vec<Entry> = Vec::new();
        for (name, slots) in entries {
            match hosts.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => {
                    *known = Some(known.unwrap_or(1).saturating_add(slots.unwrap_or(1)));
                }
                None => hosts.push((name, slots)),
            }
        }
        ensure!(!hosts.is_empty(), "no host is named");
        let said = hosts.iter().filter_map(|(name, slots)| Some(((*slots)?, name.clone())));
        let fewest = said.min_by_key(|(slots, _)| *slots);
        Ok(Self { names: hosts.into_iter().map(|(name, _)| name).collect(), fewest })
    }

    /// Returns whether all hosts are this machine.
    pub(super) fn are_here(&self) -> bool {
        self.names.iter().all(|name| ["localhost", "127.0.0.1"].contains(&name.as_str()))
    }

    /// Returns the largest number of the processes on one host.
    ///
    /// # Errors
    /// When a host has fewer slots.
    pub(super) fn most(&self, processes: usize) -> Result<usize> {
        let hosts = self.names.len();
        let most = processes.div_ceil(hosts);
        if let Some((slots, name)) = &self.fewest {
            require!(
                most <= *slots as usize,
                "{processes} processes on {hosts} hosts are up to {most} on each, but {name} has \
                 {slots} slots: give it more slots, or none"
            );
        }
        Ok(most)
    }
}

/// Reads a name, or a name and slots after a colon.
fn entry(word: &str) -> Option<Entry> {
    let (name, slots) = match word.rsplit_once(':') {
        Some((name, slots)) => (name, Some(slots_of(slots)?)),
        None => (word, None),
    };
    let is_name = !name.is_empty() && !name.starts_with('-') && !name.contains(' ');
    is_name.then(|| (name.to_owned(), slots))
}

fn slots_of(text: &str) -> Option<u32> {
    text.parse().ok().filter(|slots| *slots > 0)
}

fn of_line(line: &str) -> Option<Entry> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [word] => entry(word),
        [name, slots] => Some((entry(name)?.0, Some(slots_of(slots.strip_prefix("slots=")?)?))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(list: &str) -> Result<(String, Option<u32>), String> {
        let hosts = Hosts::of_list(list).map_err(|error| format!("{error:#}"))?;
        Ok((hosts.names.join(" "), hosts.fewest.map(|(slots, _)| slots)))
    }

    #[test]
    fn lists_have_names_and_slots() {
        for (list, names, slots) in [
            ("a", "a", None),
            ("a, b", "a b", None),
            ("a:2,b:2", "a b", Some(2)),
            ("a,b,a,b", "a b", Some(2)),
            ("a:2,a,b:4", "a b", Some(3)),
            ("a,b:2,c:1", "a b c", Some(1)),
        ] {
            assert_eq!(read(list), Ok((names.to_owned(), slots)), "{list}");
        }
        for (list, part) in [
            ("", "invalid host ``"),
            ("a,,b", "invalid host ``"),
            ("a:0", "invalid host `a:0`"),
            ("-x", "invalid host `-x`"),
            ("a b", "invalid host `a b`"),
        ] {
            assert!(read(list).is_err_and(|error| error.contains(part)), "{list}");
        }
    }

    #[test]
    fn hostfile_has_one_host_per_line() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let read = |text: &str| {
            fs::write(file.path(), text).unwrap();
            Hosts::of_file(file.path()).map_err(|error| format!("{error:#}"))
        };
        let two = || Hosts::of_list("a:2,b:2").map_err(|error| error.to_string());
        assert_eq!(read("# all\na slots=2\n\nb:2 # the other\n"), two());
        assert_eq!(read("a\na\nb\nb\n"), two());
        assert_eq!(read("# none\n\n"), Err("no host is named".to_owned()));
        let error = read("a\nb max_slots=2\n").unwrap_err();
        assert!(error.starts_with("line 2 is `b max_slots=2`: write"), "{error}");
        let error = Hosts::of_file(Path::new("/nowhere/nodes")).unwrap_err();
        assert!(format!("{error:#}").starts_with("it cannot be read: No such file"));
    }

    #[test]
    fn processes_are_spread_evenly() {
        let most = |list, processes| {
            let hosts = Hosts::of_list(list).unwrap();
            hosts.most(processes).map_err(|error| error.to_string())
        };
        for (list, processes, of_a_host) in [("a,b", 4, 2), ("a,b", 3, 2), ("a:3,b:3", 4, 2)] {
            assert_eq!(most(list, processes), Ok(of_a_host), "{list}");
        }
        let error = most("a:2,b:1", 3).unwrap_err();
        assert!(
            error.starts_with("3 processes on 2 hosts are up to 2 on each, but b has"),
            "{error}"
        );
    }

    #[test]
    fn this_machine_has_two_names() {
        for (list, are_here) in [("localhost:4,127.0.0.1:4", true), ("localhost,far", false)] {
            assert_eq!(Hosts::of_list(list).unwrap().are_here(), are_here);
        }
    }
}
