//! The machines of the thesis, and where threads run on them.

use anyhow::{Result, bail};
use consort_sim::machines::{Coherent, Kind, Layout, Machine};
use consort_sync::delegation::Backoff;

use super::run::{Point, Setting, Slots, Way};

/// The TILE-Gx8036.
pub const TILE: &str = "tile-gx36";
/// Eight Xeon E7-8867L.
pub const XEON: &str = "xeon-e7-8867l-x8";
/// Four Opteron 6176.
pub const OPTERON: &str = "opteron-6176-x4";

/// The cores of the TILE-Gx.
pub(super) const TILES: u32 = 36;
/// The most iterations of the empty loop between two operations (section 6.2.2).
const TILE_LOOP: u64 = 50;
/// The most cycles between two requests (section 7.2.1).
const X86_PAUSE: u64 = 1000;

/// A machine's description.
pub(super) fn coherent(name: &str) -> Result<Coherent> {
    match Machine::find(name)?.kind {
        Kind::Coherent(machine) => Ok(machine),
        kind => bail!("{name} is {}", kind.name()),
    }
}

/// So many threads on the TILE-Gx, thread `i` on core `i`; each section increments so many words.
pub(super) fn tile(way: Way, threads: u32, increments: usize) -> Setting {
    Setting {
        machine: TILE,
        placement: (0..threads).collect(),
        way,
        increments,
        longest_loop: TILE_LOOP,
        by_pointer: false,
    }
}

/// What comes of such threads.
pub(super) fn on_tile(way: Way, threads: u32, increments: usize) -> Result<Point> {
    tile(way, threads, increments).run()
}

/// An x86 machine of the thesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct X86 {
    pub(super) machine: &'static str,
    /// The clients that leave no core idle but what is said of the server's.
    pub(super) clients: usize,
    /// The cycles between two looks of a client that attain a high throughput.
    pub(super) backoff: Backoff,
    /// The same besides streaming stores.
    pub(super) streaming_backoff: Backoff,
    /// Whether slots are every second line.
    every_second: bool,
}

/// Both machines (sections 7.2.1 and 7.2.2).
pub(super) const BOTH: [X86; 2] = [
    X86 {
        machine: XEON,
        clients: 158,
        backoff: Backoff::Every(5000),
        streaming_backoff: Backoff::Every(3000),
        every_second: true,
    },
    X86 {
        machine: OPTERON,
        clients: 47,
        backoff: Backoff::Every(1500),
        streaming_backoff: Backoff::Every(1500),
        every_second: false,
    },
];

impl X86 {
    /// The hardware threads in the order in which they are used: the packages in turn, and the
    /// second threads of all cores last.
    fn order(machine: &Coherent) -> Vec<u32> {
        let Layout::Packages {
            packages, dies_per_package, cores_per_die, threads_per_core, ..
        } = machine.layout
        else {
            return (0..machine.threads()).collect();
        };
        let cores = dies_per_package * cores_per_die;
        let each = (0..threads_per_core).flat_map(|sibling| {
            (0..cores)
                .flat_map(move |core| (0..packages).map(move |package| (package, core, sibling)))
        });
        each.map(|(package, core, sibling)| (package * cores + core) * threads_per_core + sibling)
            .collect()
    }

    /// Runs a server with so many clients. The second thread of the server's core is idle.
    pub(super) fn serve(self, slots: Slots, clients: usize, increments: usize) -> Result<Point> {
        let machine = coherent(self.machine)?;
        let same_core = |thread: &u32| *thread > 0 && machine.distance(0, *thread) == 0;
        let mut placement = Self::order(&machine);
        placement.retain(|thread| !same_core(thread));
        placement.truncate(clients + 1);
        let slots = Slots { every_second: self.every_second, ..slots };
        self.run(Way::Shm(slots), placement, increments)
    }

    /// Runs so many threads without a server.
    pub(super) fn run_all(self, way: Way, threads: usize) -> Result<Point> {
        let mut placement = Self::order(&coherent(self.machine)?);
        placement.truncate(threads);
        self.run(way, placement, 1)
    }

    fn run(self, way: Way, placement: Vec<u32>, increments: usize) -> Result<Point> {
        let setting = Setting {
            machine: self.machine,
            placement,
            way,
            increments,
            longest_loop: X86_PAUSE,
            by_pointer: true,
        };
        setting.run()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_used_in_turn_and_second_threads_last() {
        let order = X86::order(&coherent(XEON).unwrap());
        assert_eq!(order[..9], [0, 20, 40, 60, 80, 100, 120, 140, 2]);
        assert_eq!(order[80..82], [1, 21]);
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..160));
        assert_eq!(X86::order(&coherent(OPTERON).unwrap())[..5], [0, 12, 24, 36, 1]);
    }
}
