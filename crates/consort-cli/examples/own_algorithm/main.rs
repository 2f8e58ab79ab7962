//! A `consort` command with a user-defined algorithm: `cargo run --release -p consort-cli
//! --example own_algorithm -- explain all_reduce --bytes 8 --pes 2 --all` shows it among the
//! library's algorithms, and `-- tune` measures it next to them.

use std::process::ExitCode;

mod line;

fn main() -> ExitCode {
    consort::tune::register::<line::Line>(consort::tune::Collective::AllReduce);
    consort_cli::main()
}
