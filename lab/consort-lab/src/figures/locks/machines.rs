//! The machines of the thesis, and the placement of threads on them.

use anyhow::{Result, bail};
use consort_sim::machines::{Coherent, Kind, Layout, Machine};

use super::run::{MEASURED_NS, Point, Setting, Slots, Way};

/// The TILE-Gx8036.
pub const TILE: &str = "tile-gx36";
/// Eight Xeon E7-8867L.
pub const XEON: &str = "xeon-e7-8867l-x8";
/// Four Opteron 6176.
pub const OPTERON: &str = "opteron-6176-x4";

/// The cores of the TILE-Gx.
pub(super) const TILES: u32 = 36;
/// The slots of SHM-SERVER on the TILE-Gx, whose server executes no fence before an answer (section
/// 6.2.2). The machine has no streaming stores, so they are ordinary ones.
pub(super) const TILE_SLOTS: Slots =
    Slots { every_second: false, backoff: None, tunes: false, streams: true, shuffled: false };
/// The largest number of iterations of the empty loop between two operations (section 6.2.2).
const TILE_LOOP: u64 = 50;
/// The largest number of cycles between two requests (section 7.2.1).
const X86_PAUSE: u64 = 1000;

/// Returns a machine's description.
pub(super) fn coherent(name: &str) -> Result<Coherent> {
    match Machine::find(name)?.kind {
        Kind::Coherent(machine) => Ok(machine),
        kind => bail!("{name} is {}", kind.name()),
    }
}

/// Returns the setting of `threads` threads on the TILE-Gx, with thread `i` on core `i`. Each
/// section increments `increments` words.
pub(super) fn tile(way: Way, threads: u32, increments: usize) -> Setting {
    Setting {
        machine: TILE,
        placement: (0..threads).collect(),
        way,
        increments,
        longest_loop: TILE_LOOP,
        by_pointer: false,
        measured_ns: MEASURED_NS,
        seed: 0,
        sections: None,
    }
}

/// Runs such threads.
pub(super) fn on_tile(way: Way, threads: u32, increments: usize) -> Result<Point> {
    tile(way, threads, increments).run()
}

/// An x86 machine of the thesis.
#[derive(Clone, Copy, Debug)]
pub(super) struct X86 {
    pub(super) machine: &'static str,
    /// The number of clients that occupies all hardware threads except the one next to the
    /// server's.
    pub(super) clients: u32,
    /// The number of cycles between two polls of a client that gives a high throughput.
    pub(super) backoff: u64,
    /// The same in combination with streaming stores.
    pub(super) streaming_backoff: u64,
    /// Whether the thesis has slots on every second line.
    every_second: bool,
}

/// Both machines (sections 7.2.1 and 7.2.2).
pub(super) const BOTH: [X86; 2] = [
    X86 { machine: XEON, clients: 158, backoff: 5000, streaming_backoff: 3000, every_second: true },
    X86 {
        machine: OPTERON,
        clients: 47,
        backoff: 1500,
        streaming_backoff: 1500,
        every_second: false,
    },
];

impl X86 {
    /// Returns the cores of a die, the hardware threads of a core, and the hardware threads in the
    /// order in which they are used: the packages in turn, and the second threads of all cores
    /// last.
    fn order(machine: &Coherent) -> (u32, u32, Vec<u32>) {
        let Layout::Packages {
            packages, dies_per_package, cores_per_die, threads_per_core, ..
        } = machine.layout
        else {
            return (machine.threads(), 1, (0..machine.threads()).collect());
        };
        let cores = dies_per_package * cores_per_die;
        let each = (0..threads_per_core).flat_map(|sibling| {
            (0..cores)
                .flat_map(move |core| (0..packages).map(move |package| (package, core, sibling)))
        });
        let order = each
            .map(|(package, core, sibling)| (package * cores + core) * threads_per_core + sibling)
            .collect();
        (cores_per_die, threads_per_core, order)
    }

    /// Returns the slots of a server without optimizations.
    pub(super) fn slots(self) -> Slots {
        Slots { every_second: self.every_second, ..Slots::default() }
    }

    /// Returns a setting with `clients` clients and `parts` servers. Each server executes a part of
    /// the operations. Without a server there is one more thread. The servers are on the first
    /// cores, whose second threads are idle. If too few cores are left, there are fewer clients.
    pub(super) fn setting(self, way: Way, parts: u32, clients: u32) -> Result<Setting> {
        let (_, siblings, order) = Self::order(&coherent(self.machine)?);
        let servers = if way.is_served() { parts } else { 0 };
        let others = order.into_iter().filter(|thread| *thread >= servers * siblings);
        let mut placement: Vec<u32> = (0..servers).map(|core| core * siblings).collect();
        placement.extend(others.take(if servers > 0 { clients } else { clients + 1 } as usize));
        Ok(Setting {
            machine: self.machine,
            placement,
            way,
            increments: 1,
            longest_loop: X86_PAUSE,
            by_pointer: true,
            measured_ns: MEASURED_NS,
            seed: 0,
            sections: None,
        })
    }

    /// Returns the hardware threads of the first cores, one of each.
    pub(super) fn one_per_core(self, cores: u32) -> Result<Vec<u32>> {
        let (_, siblings, _) = Self::order(&coherent(self.machine)?);
        Ok((0..cores).map(|core| core * siblings).collect())
    }

    /// Returns a setting with all cores of a die, as on the TILE-Gx (section 6.2.5).
    pub(super) fn die(self, way: Way) -> Result<Setting> {
        let (cores, _, _) = Self::order(&coherent(self.machine)?);
        let placement = self.one_per_core(cores)?;
        Ok(Setting { machine: self.machine, placement, ..tile(way, 0, 1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_used_in_turn_and_second_threads_last() {
        let order = X86::order(&coherent(XEON).unwrap()).2;
        assert_eq!(order[..9], [0, 20, 40, 60, 80, 100, 120, 140, 2]);
        assert_eq!(order[80..82], [1, 21]);
        let mut sorted = order;
        sorted.sort_unstable();
        assert!(sorted.into_iter().eq(0..160));
        assert_eq!(X86::order(&coherent(OPTERON).unwrap()).2[..5], [0, 12, 24, 36, 1]);
    }

    /// Section 7.2.1: a server is alone on its core.
    #[test]
    fn threads_next_to_servers_are_not_clients() {
        for (x86, siblings) in BOTH.into_iter().zip([2, 1]) {
            let threads = coherent(x86.machine).unwrap().threads();
            for servers in [1, 2] {
                let setting = |clients| x86.setting(Way::Shm(x86.slots()), servers, clients);
                let placement = setting(x86.clients).unwrap().placement;
                let all = threads - servers * (siblings - 1);
                let clients = x86.clients.min(all - servers);
                assert_eq!(placement.len(), (clients + servers) as usize, "{x86:?}");
                let on_server_core = |thread: &&u32| **thread < servers * siblings;
                assert_eq!(
                    placement.iter().filter(on_server_core).count(),
                    servers as usize,
                    "{x86:?}"
                );
            }
            assert_eq!(x86.clients + 1, threads - (siblings - 1));
            let threads = x86.setting(Way::Mcs, 1, x86.clients).unwrap().placement.len();
            assert_eq!(threads, x86.clients as usize + 1);
        }
    }
}
