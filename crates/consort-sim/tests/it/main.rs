//! Algorithms on simulated machines, and under schedules at random.

mod announce;
