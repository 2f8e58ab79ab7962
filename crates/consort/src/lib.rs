//! Tuned collectives and one-sided communication between the threads of a process.
