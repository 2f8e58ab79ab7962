//! Algorithms on simulated machines, and under schedules at random.

mod async_broadcast;
