//! The tuner from outside, on a workbench that is made up.

mod checking;
mod choosing;
mod fake;
mod files;
mod searching;
