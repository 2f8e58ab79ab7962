//! Integration tests of the command and of the whole source tree.

mod bench;
mod cookbook;
mod help;
mod interrupts;
mod outputs;
mod own_algorithm;
mod pages;
mod profile;
mod readme;
mod report;
mod run;
mod shmem;
mod tidy;
mod unusual_files;
mod usage;
mod wisdom;
