//! A ring of cells, the part of LCRQ that most operations use: Morrison and Afek 2013, section 3,
//! Figure 3.
//!
//! A ticket is a number that a thread gets by adding one to `head` or to `tail`. A value is put
//! with a ticket of `tail` and taken with the same ticket of `head`. A ticket belongs to a cell in
//! a *round*. A thread that reaches its cell too late gives up its ticket:
//!
//! | a thread that takes finds in its cell | and then it |
//! | --- | --- |
//! | the value of its round | takes it, and leaves the cell for the next round |
//! | no value, and no later round | leaves the cell for the next round: no thread puts with this ticket |
//! | a value of an earlier round | marks the cell unsafe: that value is still to be taken |
//! | a later round | does nothing: other threads have given up its ticket |
//!
//! A thread can put into a cell that has no value and whose round is not later than the ticket's.
//! The cell must also be safe, or `head` must not have passed the ticket yet. If a ring is full, or
//! putting fails too often, the ring is closed to puts for as long as a thread may use it. A bit of
//! `tail` marks this.
//!
//! A cell is exchanged atomically. It is a pair of words or, if the machine exchanges no pairs, one
//! word with values of 32 bits and rounds of 31, as in Petrović 2015, section 6.2.4. In place of
//! the paper's index a cell has its round, so that zeros are an empty ring. Rounds never wrap
//! around: putting closes the ring before the last round ends, and taking then stays in the last
//! round.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use consort_machine::{Line, Machine};

/// In `tail`: the ring is closed to puts.
const CLOSED: u64 = 1 << 63;
/// Tickets are less than this.
const TICKETS: u64 = 1 << 62;
/// How often a thread tries to put before it closes the ring: the paper's `starving`.
const TRIES: u32 = 100;
/// How often a thread that takes checks for a value that another thread is about to put, and the
/// cycles of rest between checks. None in loom models, which would try each check.
const CHECKS: u32 = if cfg!(loom) { 0 } else { 100 };
const REST_CYCLES: u64 = 40;

/// Words of `links`: the next ring of the queue, 0 if there is none; the next ring of those out of
/// use; and, in a queue for clusters, the cluster whose turn it is plus one.
pub(super) const NEXT: usize = 0;
pub(super) const NEXT_SPARE: usize = 1;
pub(super) const CLUSTER: usize = 2;

/// How cells are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CellForm {
    /// In two words.
    Pairs,
    /// In one.
    Packed,
}

impl CellForm {
    const fn cells_of_line(self) -> usize {
        match self {
            Self::Pairs => 4,
            Self::Packed => 8,
        }
    }

    const fn last_round(self) -> u64 {
        match self {
            Self::Pairs => (1 << 63) - 1,
            Self::Packed => (1 << 31) - 1,
        }
    }

    /// Returns the first number that is not a value.
    pub(super) const fn values(self) -> u64 {
        match self {
            Self::Pairs => super::VALUES,
            Self::Packed => (1 << 32) - 1,
        }
    }
}

/// A cell.
#[derive(Clone, Copy)]
struct Cell {
    round: u64,
    is_unsafe: bool,
    /// The value plus one; 0 if there is none.
    value: u64,
}

impl Cell {
    /// Returns the word with the round, and the word with the value.
    fn pair(self) -> [u64; 2] {
        [self.round << 1 | u64::from(self.is_unsafe), self.value]
    }

    fn of_pair([state, value]: [u64; 2]) -> Self {
        Self { round: state >> 1, is_unsafe: state & 1 == 1, value }
    }

    fn packed(self) -> u64 {
        let [state, value] = self.pair();
        value << 32 | state
    }

    fn unpacked(word: u64) -> Self {
        Self::of_pair([word & 0xffff_ffff, word >> 32])
    }
}

/// A ring.
#[derive(Debug)]
pub(super) struct Ring {
    /// Word 0 of `head` and of `tail`: the next ticket.
    head: Line,
    tail: Line,
    pub(super) links: Line,
    /// Consecutive cells are on different lines.
    lines: Box<[Line]>,
    form: CellForm,
    /// The numbers of cells and of their lines, as powers of 2.
    cell_bits: u32,
    line_bits: u32,
}

impl Ring {
    /// Creates an empty ring of `size` cells, a power of two.
    pub(super) fn new(form: CellForm, size: usize) -> Self {
        let lines = (0..size.div_ceil(form.cells_of_line())).map(|_| Line::default());
        let [head, tail, links] = std::array::from_fn(|_| Line::default());
        let (cell_bits, line_bits) = (size.ilog2(), lines.len().ilog2());
        Self { head, tail, links, lines: lines.collect(), form, cell_bits, line_bits }
    }

    const fn size(&self) -> u64 {
        1 << self.cell_bits
    }

    /// Returns the round of a ticket.
    fn round(&self, ticket: u64) -> u64 {
        (ticket >> self.cell_bits).min(self.form.last_round())
    }

    /// Returns the first ticket with which nothing is put.
    fn end(&self) -> u64 {
        self.form.last_round().saturating_mul(self.size()).min(TICKETS)
    }

    /// Returns the line of a ticket's cell, and the cell's index on it.
    fn place(&self, ticket: u64) -> (&Line, usize) {
        #[expect(clippy::cast_possible_truncation, reason = "less than the size")]
        let cell = (ticket & (self.size() - 1)) as usize;
        (&self.lines[cell & (self.lines.len() - 1)], cell >> self.line_bits)
    }

    /// Reads the cell of a ticket. The two words of a pair are read one after the other, so they
    /// may be of different times. Then the exchange fails. If no exchange follows, the caller has
    /// used only the round, which is in one word and never decreases, or it gives up a ticket of
    /// `tail`, which is always allowed.
    #[inline]
    async fn cell<M: Machine>(&self, m: &M, ticket: u64) -> Cell {
        let (line, place) = self.place(ticket);
        // Pairs with the releases of `exchange`.
        match self.form {
            CellForm::Pairs => {
                let pair = &line.pairs()[place];
                let value = m.load(&pair[1], Relaxed).await;
                Cell::of_pair([m.load(&pair[0], Acquire).await, value])
            }
            CellForm::Packed => Cell::unpacked(m.load(&line[place], Acquire).await),
        }
    }

    /// Replaces the cell of a ticket by `new` if it is `old`. Returns whether it was.
    #[inline]
    async fn exchange<M: Machine>(&self, m: &M, ticket: u64, old: Cell, new: Cell) -> bool {
        let (line, place) = self.place(ticket);
        match self.form {
            CellForm::Pairs => {
                let pair = &line.pairs()[place];
                m.compare_exchange_pair(pair, old.pair(), new.pair(), AcqRel).await.is_ok()
            }
            CellForm::Packed => {
                let word = &line[place];
                m.compare_exchange(word, old.packed(), new.packed(), AcqRel).await.is_ok()
            }
        }
    }

    /// Puts a value. Returns whether the ring is still open; if not, nothing was put.
    #[inline]
    pub(super) async fn put<M: Machine>(&self, m: &M, value: u64) -> bool {
        for tries in 1.. {
            // Pairs with that of `take`.
            let ticket = m.fetch_add(&self.tail[0], 1, AcqRel).await;
            if ticket & CLOSED != 0 {
                return false;
            }
            let (round, old) = (self.round(ticket), self.cell(m, ticket).await);
            let new = Cell { round, is_unsafe: false, value: value + 1 };
            if old.value == 0
                && old.round <= round
                && ticket < self.end()
                && (!old.is_unsafe || m.load(&self.head[0], Acquire).await <= ticket)
                && self.exchange(m, ticket, old, new).await
            {
                return true;
            }
            let head = m.load(&self.head[0], Acquire).await;
            let is_full = ticket.saturating_sub(head) >= self.size();
            if is_full || ticket >= self.end() || tries == TRIES {
                self.close(m).await;
                return false;
            }
        }
        unreachable!("the last try returns")
    }

    async fn close<M: Machine>(&self, m: &M) {
        let mut tail = m.load(&self.tail[0], Relaxed).await;
        while tail & CLOSED == 0 {
            let closed = m.compare_exchange(&self.tail[0], tail, tail | CLOSED, AcqRel).await;
            tail = closed.unwrap_or_else(|tail| tail) | (CLOSED * u64::from(closed.is_ok()));
        }
    }

    /// Takes the first value; `None` if the ring is empty.
    #[inline]
    pub(super) async fn take<M: Machine>(&self, m: &M) -> Option<u64> {
        loop {
            // Pairs with that of `put`.
            let ticket = m.fetch_add(&self.head[0], 1, AcqRel).await;
            let value = self.take_from(m, ticket).await;
            if value.is_some() {
                return value;
            }
            if m.load(&self.tail[0], Acquire).await & !CLOSED <= ticket + 1 {
                self.fix_state(m).await;
                return None;
            }
        }
    }

    /// Takes the value of a ticket; `None` if none was put with it, and then none will be.
    #[inline]
    async fn take_from<M: Machine>(&self, m: &M, ticket: u64) -> Option<u64> {
        let round = self.round(ticket);
        let next = self.round(ticket.saturating_add(self.size()));
        let mut checks = 0;
        loop {
            let old = self.cell(m, ticket).await;
            if old.round > round {
                return None;
            }
            let new = match old.value {
                0 if checks < CHECKS && self.is_put_pending(m, ticket).await => {
                    checks += 1;
                    m.pause(REST_CYCLES).await;
                    continue;
                }
                0 => Cell { round: next, ..old },
                _ if old.round == round => Cell { round: next, value: 0, ..old },
                _ => Cell { is_unsafe: true, ..old },
            };
            if self.exchange(m, ticket, old, new).await {
                let is_taken = old.value != 0 && old.round == round;
                return is_taken.then(|| old.value - 1);
            }
        }
    }

    /// Returns whether a thread has taken this ticket from `tail`, and may put a value soon.
    async fn is_put_pending<M: Machine>(&self, m: &M, ticket: u64) -> bool {
        let tail = m.load(&self.tail[0], Acquire).await;
        tail & CLOSED == 0 && tail > ticket
    }

    /// Advances `tail` past the tickets of threads that found the ring empty: the paper's
    /// `fixState`. A closed ring does not need it.
    async fn fix_state<M: Machine>(&self, m: &M) {
        loop {
            let tail = m.load(&self.tail[0], Acquire).await;
            let head = m.load(&self.head[0], Acquire).await;
            if head <= tail || m.compare_exchange(&self.tail[0], tail, head, AcqRel).await.is_ok() {
                return;
            }
        }
    }

    /// Opens an empty ring that no other thread uses. Returns whether it can be used again.
    ///
    /// No cell has a value, and no ticket from now on is less than earlier ones. A cell's round is
    /// at most that of its next ticket, because one of the earlier tickets left the cell for the
    /// round after its own.
    pub(super) async fn open<M: Machine>(&self, m: &M) -> bool {
        let tail = m.load(&self.tail[0], Relaxed).await & !CLOSED;
        let ticket = m.load(&self.head[0], Relaxed).await.max(tail);
        m.store(&self.head[0], ticket, Relaxed).await;
        m.store(&self.tail[0], ticket, Relaxed).await;
        m.store(&self.links[NEXT], 0, Relaxed).await;
        m.store(&self.links[CLUSTER], 0, Relaxed).await;
        ticket < self.end()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use consort_machine::at_once;

    use super::*;
    use crate::machine::MACHINE as M;

    fn forms() -> impl Iterator<Item = CellForm> {
        [CellForm::Packed, CellForm::Pairs]
            .into_iter()
            .filter(|it| *it == CellForm::Packed || M.has_pairs())
    }

    #[test]
    fn cell_is_read_back_from_its_words() {
        let cell = Cell { round: (1 << 31) - 1, is_unsafe: true, value: 0xffff_ffff };
        for same in [Cell::unpacked(cell.packed()), Cell::of_pair(cell.pair())] {
            assert_eq!((same.round, same.is_unsafe, same.value), (cell.round, true, cell.value));
        }
    }

    #[test]
    fn a_full_ring_is_closed_and_may_be_opened_when_it_is_empty() {
        for form in forms() {
            let ring = Ring::new(form, 8);
            for _ in 0..3 {
                assert!((0..8).all(|value| at_once(ring.put(&M, value))));
                assert!(!at_once(ring.put(&M, 8)) && !at_once(ring.put(&M, 9)));
                let taken = std::iter::from_fn(|| at_once(ring.take(&M)));
                assert!(taken.eq(0..8));
                assert!(!at_once(ring.put(&M, 10)));
                assert!(at_once(ring.open(&M)));
            }
            assert_eq!(at_once(ring.take(&M)), None);
        }
    }

    /// Begins just before the last round.
    #[test]
    fn ring_closes_for_good_in_the_last_round() {
        let ring = Ring::new(CellForm::Packed, 4);
        let near = ring.end() - 6;
        at_once(M.store(&ring.head[0], near, Relaxed));
        at_once(M.store(&ring.tail[0], near, Relaxed));
        assert!((0..4).all(|value| at_once(ring.put(&M, value))));
        assert!(std::iter::from_fn(|| at_once(ring.take(&M))).eq(0..4));
        (0..20).for_each(|_| assert_eq!(at_once(ring.take(&M)), None));
        assert!(!at_once(ring.put(&M, 4)));
        assert!(!at_once(ring.open(&M)));
        let last = CellForm::Packed.last_round();
        assert!((0..4).all(|ticket| at_once(ring.cell(&M, ticket)).round == last));
    }
}
