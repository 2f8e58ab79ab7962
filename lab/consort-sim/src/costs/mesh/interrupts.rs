//! Interrupts of the Intel SCC, and the signals that they cause in a program.
//!
//! One instruction interrupts up to 32 cores. Each core then reads its status register. The
//! registers of all cores are on one chip next to the mesh, so they serve one core after the other,
//! or several at a time if the machine's description says so. By the time of this read, several
//! interrupts may have arrived: the kernel turns them into one signal to the program (Petrović
//! 2015, sections 3.2.4 and 3.3.4).

use std::cell::{Cell, RefCell};

use consort_fabric::Rank;

use super::pace::Pace;
use crate::{
    account::Cause,
    costs::Site,
    engine::{Time, picoseconds},
    machines::MessageBuffers,
};

/// The largest number of cores that one instruction interrupts.
const CORES_AT_ONCE: usize = 32;

/// The costs of interrupts.
pub(super) struct Controller {
    /// The core's time for an interrupt, excluding the read of its status register.
    handling: Time,
    status_read: Time,
    /// The time to switch to the program's handler.
    signal: Time,
    /// The times when the status registers can serve another core, one for each core that they
    /// serve at a time.
    free_at: RefCell<Vec<Time>>,
}

impl Controller {
    pub(super) fn new(machine: &MessageBuffers, fitted: bool) -> Self {
        let (latency, read) = (
            picoseconds(machine.interrupt.latency_ns(machine.ghz)),
            picoseconds(machine.interrupt.status_read_ns(machine.ghz)),
        );
        Self {
            handling: latency.saturating_sub(read),
            status_read: read,
            signal: picoseconds(machine.interrupt.signal_ns.filter(|_| fitted).unwrap_or(0.0)),
            free_at: RefCell::new(vec![0; machine.interrupt.reads_at_once as usize]),
        }
    }

    /// Returns when a core that is interrupted now has read its status register. The registers
    /// serve cores in the order of their interrupts.
    fn arrival(&self, now: Time) -> Time {
        let mut free_at = self.free_at.borrow_mut();
        let first = free_at.iter_mut().min().expect("at least one core is served at a time");
        *first = now.max(*first) + self.status_read;
        *first
    }

    /// Interrupts some cores. The core's own part takes `access`. Returns when each receives the
    /// interrupt.
    pub(super) async fn interrupt(&self, site: Site<'_>, to: &[Rank], access: Time) -> Vec<Time> {
        let mut arrivals = Vec::new();
        for cores in to.chunks(CORES_AT_ONCE) {
            let now = site.engine.now();
            arrivals.extend(cores.iter().map(|_| self.arrival(now)));
            let mut pace = Pace::new(site);
            pace.spend(Cause::Flags, access);
            pace.settle().await;
        }
        arrivals
    }

    /// Handles an interrupt that arrived at time `arrived`, up to the call of the program's
    /// handler. The kernel switches to the program once for all interrupts that arrive while it is
    /// `serving` the first of them.
    pub(super) async fn handle(&self, site: Site<'_>, serving: &Cell<Time>, arrived: Time) {
        let mut all = self.handling;
        if arrived > serving.get() {
            all += self.signal;
            serving.set(arrived + all);
        }
        site.spend(Cause::Flags, all).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machines::{Kind, Machine};

    /// With two at a time, every second core waits for the one before.
    #[test]
    fn status_registers_serve_some_cores_at_a_time() {
        let arrivals = |at_once| {
            let Kind::MessageBuffers(mut scc) = Machine::find("scc").unwrap().kind else {
                panic!("it has message buffers");
            };
            (scc.ghz, scc.interrupt.status_read_cycles) = (1.0, 100.0);
            scc.interrupt.reads_at_once = at_once;
            let controller = Controller::new(&scc, false);
            [0; 4].map(|now| controller.arrival(now) / 1000)
        };
        assert_eq!(arrivals(1), [100, 200, 300, 400]);
        assert_eq!(arrivals(2), [100, 100, 200, 200]);
    }
}
