//! A `consort` command that knows an algorithm of one's own: `cargo run --release -p consort-cli
//! --example own_algorithm -- explain all_reduce --bytes 8 --pes 2 --all` shows it among the
//! library's, and `-- tune` measures it beside them.

use std::process::ExitCode;

mod line;

fn main() -> ExitCode {
    consort::register::<line::Line>(consort::Collective::AllReduce);
    consort_cli::main()
}
