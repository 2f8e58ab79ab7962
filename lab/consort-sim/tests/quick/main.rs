//! Tests of algorithms on simulated machines, and under random schedules.

use consort_sandbox as _;

mod async_broadcast;
