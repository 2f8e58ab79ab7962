//! The command `consort`.

use std::process::ExitCode;

fn main() -> ExitCode {
    consort_cli::main()
}
