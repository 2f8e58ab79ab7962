//! The links between the routers of a mesh.
//!
//! A packet travels along its row, then along its column. It occupies each link on its way for as
//! long as its flits take. It uses the first gap after its arrival that is long enough. The
//! simulation handles packets in the order in which cores send them, although they may reach a link
//! in another order.

use std::cell::RefCell;

use crate::engine::Time;

/// How long an occupation is kept after its end, for packets that are entered late.
const KEPT: Time = 200_000;
/// Old occupations are dropped when there are more than this.
const MANY: usize = 32;

/// All links of a mesh.
pub(super) struct Links {
    columns: usize,
    hop: Time,
    flit: Time,
    line_flits: Time,
    /// The links that leave each tile on its four sides: the times when they are occupied, in
    /// order.
    occupied: Vec<RefCell<Vec<(Time, Time)>>>,
}

/// A kind of packet.
#[derive(Clone, Copy)]
pub(super) enum Packet {
    /// A line, with its header.
    Line,
    /// A request to read, or an acknowledgement.
    Header,
}

const EAST: usize = 0;
const WEST: usize = 1;
const SOUTH: usize = 2;
const NORTH: usize = 3;

impl Links {
    pub(super) fn new(
        columns: usize,
        rows: usize,
        hop: Time,
        (flit, line_flits): (Time, u32),
    ) -> Self {
        let occupied = (0..4 * columns * rows).map(|_| RefCell::default()).collect();
        Self { columns, hop, flit, line_flits: line_flits.into(), occupied }
    }

    /// Sends a packet between tiles at time `off`. Returns its total waiting time for links.
    pub(super) fn pass(&self, from: usize, to: usize, packet: Packet, off: Time) -> Time {
        let flits = match packet {
            Packet::Line => self.line_flits,
            Packet::Header => 1,
        };
        let (mut at, mut comes, mut waited) = (from, off, 0);
        while at != to {
            let (side, next) = self.onwards(at, to);
            comes += self.hop;
            let wait =
                occupy(&mut self.occupied[4 * at + side].borrow_mut(), comes, flits * self.flit);
            (comes, waited) = (comes + wait, waited + wait);
            at = next;
        }
        waited
    }

    fn onwards(&self, at: usize, to: usize) -> (usize, usize) {
        let (column, to_column) = (at % self.columns, to % self.columns);
        match column.cmp(&to_column) {
            std::cmp::Ordering::Less => (EAST, at + 1),
            std::cmp::Ordering::Greater => (WEST, at - 1),
            std::cmp::Ordering::Equal if at < to => (SOUTH, at + self.columns),
            std::cmp::Ordering::Equal => (NORTH, at - self.columns),
        }
    }
}

/// Occupies a link for `time`, in the first gap after `comes`. Returns the wait for that gap.
fn occupy(occupied: &mut Vec<(Time, Time)>, comes: Time, time: Time) -> Time {
    if occupied.last().is_none_or(|&(_, end)| end <= comes) {
        if occupied.len() >= MANY {
            occupied.retain(|&(_, end)| end + KEPT > comes);
        }
        occupied.push((comes, comes + time));
        return 0;
    }
    let (mut start, mut index) = (comes, occupied.len());
    for (at, &(other, end)) in occupied.iter().enumerate() {
        if start + time <= other {
            index = at;
            break;
        }
        start = start.max(end);
    }
    occupied.insert(index, (start, start + time));
    start - comes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns links of six columns, with hops of 5, flits of 1, and lines of three flits.
    fn links() -> Links {
        Links::new(6, 4, 5, (1, 3))
    }

    /// From tile (5, 2) to (0, 1): five links west, then one north.
    #[test]
    fn packets_go_along_the_row_first() {
        let links = links();
        assert_eq!(links.pass(17, 6, Packet::Line, 0), 0);
        let used = links.occupied.iter().enumerate().filter(|(_, link)| !link.borrow().is_empty());
        let used: Vec<usize> = used.map(|(link, _)| link).collect();
        assert_eq!(
            used,
            [
                4 * 12 + NORTH,
                4 * 13 + WEST,
                4 * 14 + WEST,
                4 * 15 + WEST,
                4 * 16 + WEST,
                4 * 17 + WEST
            ]
        );
        assert_eq!(*links.occupied[4 * 12 + NORTH].borrow(), [(30, 33)]);
    }

    #[test]
    fn packet_waits_only_for_packets_on_its_link() {
        let links = links();
        assert_eq!(links.pass(0, 2, Packet::Line, 0), 0);
        assert_eq!(links.pass(2, 0, Packet::Line, 0), 0, "the other direction is another link");
        assert_eq!(links.pass(0, 1, Packet::Header, 0), 3, "until the line has passed");
        assert_eq!(links.pass(0, 0, Packet::Line, 0), 0, "a packet to its own tile needs no link");
    }

    #[test]
    fn a_packet_takes_the_first_gap_that_is_long_enough() {
        let mut link = vec![(10, 13), (14, 17)];
        assert_eq!(occupy(&mut link, 13, 1), 0);
        assert_eq!(occupy(&mut link, 9, 3), 8, "no gap of 3 before 17");
        assert_eq!(occupy(&mut link, 5, 3), 0, "entered late, but arrived before the others");
        assert_eq!(link, [(5, 8), (10, 13), (13, 14), (14, 17), (17, 20)]);
    }
}
