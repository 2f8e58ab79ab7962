//! Every algorithm on simulated fabrics: schedules at random, and machines that are described.
//!
//! `cases` is what there is to test and `play` runs it and compares; `schedules` plays programs of
//! all cases under random schedules, `machines` each algorithm on a machine, and `faults` sees to
//! it that what is broken does not pass. `synchronous` is a fabric whose sends wait for the
//! receiver.

mod cases;
mod data;
mod faults;
mod machines;
mod play;
mod schedules;
mod synchronous;
