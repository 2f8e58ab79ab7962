//! The command `consort-lab`.

use std::process::ExitCode;

fn main() -> ExitCode {
    consort_lab::main()
}
