//! `consort wisdom`: the path and the entries of wisdom, merging, import and export.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use consort::{
    launch::Fabric,
    tune::{Algorithms, Arrival, Collective},
};
use consort_bench::units;
use consort_fabric::OperatorClass;
use consort_tuner::{Identity, Wisdom as Content, WisdomError};
use serde::Serialize;

use crate::wisdom_file::{self, Record, advised, set_aside};
use consort_console::{
    args,
    output::{self, brief_in_words, finish, table, time},
};

const EXAMPLES: &str = "\
Examples:
  consort wisdom path                        where it is
  consort wisdom path --fabric mixed:2x1     for machines with 2 PEs each
  consort wisdom show --collective reduce    what is in it
  consort wisdom export lab.toml             a copy for machines of this kind
  consort wisdom merge night.toml            take its better entries";

const DETAILS: &str = "\
Wisdom fits machines of the same kind. It outlives versions of the library:
entries whose algorithms have changed are left out.";

/// Show, merge, import and export the results of tuning
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = format!("{EXAMPLES}\n\n{DETAILS}"))]
pub(crate) struct Wisdom {
    #[command(subcommand)]
    action: WisdomCommand,
    /// The wisdom [default: CONSORT_WISDOM, or the user's]
    #[arg(long, value_name = "FILE", global = true)]
    wisdom: Option<PathBuf>,
    /// threads (default), processes, mpi or mixed
    ///
    /// The PEs: threads, processes, or processes of an MPI, as in mpi, mpi:2:in-turn or mixed:2x1,
    /// as `consort tune` names them. Each has its own file.
    #[arg(long, value_name = "FABRIC", default_value = "threads", global = true)]
    #[arg(hide_default_value = true)]
    fabric: Fabric,
}

#[derive(clap::Subcommand, Debug)]
enum WisdomCommand {
    /// Print the path of the wisdom
    Path,
    /// Print the machine and version of the wisdom, and its entries
    Show {
        /// Only these collectives, such as barrier,all_reduce [default: all]
        #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
        collective: Vec<Collective>,
        /// Write a JSON object to FILE, or print it
        #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
            default_missing_value = "-", value_parser = args::writable())]
        json: Option<PathBuf>,
    },
    /// Take the better entries of other files
    ///
    /// Takes the entries with the higher rigour, then from an idle machine, then with the narrower
    /// interval.
    Merge {
        /// Wisdom of the same machine, version and algorithms
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Replace the wisdom with a file, and keep the old one as FILE.old
    Import {
        /// Wisdom of the same machine, version and algorithms
        file: PathBuf,
    },
    /// Copy the wisdom to a file, or to standard output (`-`)
    Export {
        /// The copy
        #[arg(default_value = "-")]
        file: PathBuf,
    },
}

/// The output of `show --json`.
#[derive(Debug, Serialize)]
struct WisdomOutput<'s> {
    path: &'s Path,
    machine: &'s str,
    library: &'s str,
    /// The number of entries whose algorithms have changed since, which are not used.
    outdated: usize,
    /// The reason why it is not used here; null if it is used.
    misfit: Option<String>,
    entries: Vec<Record>,
}

impl Wisdom {
    /// Performs the subcommand.
    ///
    /// # Errors
    /// When a file cannot be read or written, is not wisdom, or does not fit.
    pub(crate) fn run(&self) -> Result<()> {
        let path = wisdom_file::path(self.wisdom.as_ref(), Arrival::Together, self.fabric)?;
        let identity = Algorithms::of(self.fabric).identity();
        match &self.action {
            WisdomCommand::Path => output::print_as_it_is(&format!("{}\n", path.display())),
            WisdomCommand::Show { collective, json } => {
                show((&path, identity), collective, json.as_deref())
            }
            WisdomCommand::Merge { files } => merge(&path, identity, files),
            WisdomCommand::Import { file } => import(&path, identity, file),
            WisdomCommand::Export { file } => export(&path, file),
        }
    }
}

fn show(
    (path, here): (&Path, &Identity),
    collectives: &[Collective],
    json: Option<&Path>,
) -> Result<()> {
    let wisdom = Content::load_unfitted(path).map_err(advised)?;
    let (misfit, outdated) = match Content::load(path, here) {
        Ok(used) => (None, used.outdated()),
        Err(WisdomError::IdentityMismatch { mismatch, .. }) => (Some(mismatch.to_string()), 0),
        Err(error) => return Err(advised(error)),
    };
    let wanted = |collective| collectives.is_empty() || collectives.contains(&collective);
    let entries = wisdom.entries().filter(|entry| wanted(entry.query.collective));
    let identity = wisdom.identity();
    if let Some(json) = json {
        let shown = WisdomOutput {
            path,
            machine: &identity.machine,
            library: &identity.library,
            outdated,
            misfit,
            entries: entries.map(Record::from).collect(),
        };
        return output::write_json_lines(json, &[shown]);
    }
    let mut text = format!(
        "{}\nmachine: {}, library: {}\n",
        path.display(),
        identity.machine,
        identity.library
    );
    if let Some(misfit) = misfit {
        text += &format!("not used here: {misfit}\n");
    }
    if outdated > 0 {
        text += &format!("not used: {outdated} entries, whose algorithms have changed since\n");
    }
    let mut busy_count = 0;
    let mut table =
        table(["collective", "PEs", "mode", "bytes", "memory", "choice", "time", "margin", "won"]);
    for entry in entries {
        let query = &entry.query;
        busy_count += usize::from(entry.busy.is_some());
        let busy = if entry.busy.is_some() { ", busy" } else { "" };
        let is_barrier = query.collective == Collective::Barrier;
        let ordered = if query.operator == OperatorClass::Ordered { ", ordered" } else { "" };
        let memory = if query.symmetric { "symmetric" } else { "private" };
        let unless_barrier = |text: String| if is_barrier { String::new() } else { text };
        table.add_row([
            format!("{}{ordered}", query.collective),
            query.pes.to_string(),
            unless_barrier(query.sync.to_string()),
            unless_barrier(units::size(query.bytes)),
            unless_barrier(memory.to_owned()),
            brief_in_words(&entry.choice),
            time(entry.median_ns),
            entry.margin().map_or("-".to_owned(), |margin| format!("{:.0} %", margin * 100.0)),
            format!("{}{busy}", entry.confidence),
        ]);
    }
    text += &format!("\n{}", finish(table, &[1, 3, 6, 7]));
    if busy_count > 0 {
        text += &output::wrapped(&format!(
            "busy: the machine was busy during {busy_count} of these queries; `consort explain` \
             names the programs. Tune them again with --retune when it is idle."
        ));
    }
    output::print(&text)
}

fn merge(path: &Path, identity: &Identity, files: &[PathBuf]) -> Result<()> {
    let mut wisdom = match Content::load(path, identity) {
        Err(WisdomError::NotFound { .. }) => Content::new(identity.clone()),
        other => other.map_err(advised)?,
    };
    let mut text = String::new();
    for file in files {
        let other = Content::load(file, identity).map_err(advised)?;
        let count = other.entries().len();
        let taken = wisdom.merge(other).with_context(|| file.display().to_string())?;
        text += &format!("{}: took {taken} of {count} entries\n", file.display());
    }
    wisdom.save(path)?;
    output::print(&format!("{text}Wisdom is in {}\n", path.display()))
}

fn import(path: &Path, identity: &Identity, file: &Path) -> Result<()> {
    let wisdom = Content::load(file, identity).map_err(advised)?;
    let same = |one: &Path, other: &Path| {
        fs::canonicalize(one).ok().zip(fs::canonicalize(other).ok()).is_some_and(|(a, b)| a == b)
    };
    if same(path, file) {
        bail!("{} is the wisdom already: name another file to import", file.display());
    }
    let aside = set_aside(path)?;
    wisdom.save(path)?;
    let count = wisdom.entries().len();
    let mut text = format!("Imported {count} entries into {}\n", path.display());
    if let Some(aside) = aside {
        text += &format!("The old wisdom is kept as {}\n", aside.display());
    }
    output::print(&text)
}

fn export(path: &Path, file: &Path) -> Result<()> {
    let wisdom = Content::load_unfitted(path).map_err(advised)?;
    if file.as_os_str() == "-" {
        return output::print_as_it_is(&wisdom.to_string());
    }
    wisdom.save(file)?;
    Ok(())
}
