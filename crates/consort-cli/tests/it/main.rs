//! Integration tests of the command and of the whole source tree.

mod readme;
mod tidy;
