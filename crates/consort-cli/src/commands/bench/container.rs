//! `consort bench container`: stacks and queues of many threads.

use std::process::ExitCode;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use consort_bench::workloads::critical_sections::Subject;

use super::critical_sections::SectionOptions;

/// The containers.
pub(super) const KINDS: [Subject; 2] = [Subject::Stack, Subject::Queue];

const EXAMPLES: &str = "\
Examples:
  consort bench container stack --threads 2 --between 0
  consort bench container queue --threads 2,8";

/// Time stacks and queues, next to crossbeam's
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ContainerBench {
    /// Under each lock and scheme, and lock-free
    #[arg(value_name = "KIND", value_parser = kind())]
    kind: Subject,
    #[command(flatten)]
    options: SectionOptions,
}

/// Reads the name of a container.
fn kind() -> impl TypedValueParser<Value = Subject> {
    PossibleValuesParser::new(KINDS.map(Subject::name)).try_map(|name| {
        KINDS.into_iter().find(|kind| kind.name() == name).ok_or("unknown container")
    })
}

impl ContainerBench {
    pub(super) fn run(&self) -> Result<ExitCode> {
        self.options.run(self.kind, 1)
    }
}
