//! Algorithms on simulated machines, and under schedules at random.

use consort_sandbox as _;

mod async_broadcast;
