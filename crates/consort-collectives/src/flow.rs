//! Flow control: no PE enters call `n` before all have left call `n - W`.
//!
//! Call `n` uses the lines `n mod W` of each inbox whatever its algorithm, so this is what keeps
//! Loose calls, and a change of algorithm, from overwriting messages that are not read yet.
//!
//! The window is four quarters. When a PE has left the last call of a quarter it gives every peer a
//! credit, unless some call of the quarter was left or entered by all together: whoever is past
//! such a call knows that all have left the calls before. All PEs make the same calls, so all agree
//! on which credits are given. Before quarter `k`, all must have left quarter `k - 4`:
//!
//! | since then | entering quarter `k` waits for |
//! | --- | --- |
//! | a synchronizing call in quarter `k - 3`, `k - 2` or `k - 1` | nothing |
//! | none, nor in quarter `k - 4` | the credits of quarter `k - 4` |
//! | none, but one in quarter `k - 4` | the credits of quarter `k - 3` |
//!
//! Cost: nothing for calls that synchronize; for others `P - 1` additions a quarter.

use consort_fabric::{Fabric, Op, Rank};

/// One PE's account of its calls.
#[derive(Clone, Debug)]
pub struct Flow {
    quarter_calls: u64,
    /// The credits given for the last four quarters, latest last; none where a call synchronized.
    recent: [Option<u64>; 4],
    given: u64,
}

/// What a PE owes and awaits before it enters the next quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    give: Option<u64>,
    await_credits: Option<u64>,
}

impl Flow {
    /// For a window of so many calls, a power of two from 4 on.
    #[must_use]
    pub fn new(window: u64) -> Self {
        assert!(window >= 4, "a window has four quarters");
        assert!(window.is_power_of_two(), "quarters are told by a mask");
        Self { quarter_calls: window / 4, recent: [None; 4], given: 0 }
    }

    /// A call whose number has none of these bits begins a quarter: a turn is due before it.
    #[must_use]
    pub const fn quarter_mask(&self) -> u64 {
        self.quarter_calls - 1
    }

    /// Ends a quarter, in which some call was entered or left by all together or none was, and says
    /// what is to be done before the next begins.
    pub fn turn(&mut self, synchronized: bool) -> Turn {
        let give = (!synchronized).then_some(self.given);
        self.given += u64::from(give.is_some());
        self.recent.rotate_left(1);
        self.recent[3] = give;
        let [fourth, third, second, last] = self.recent;
        let known = third.is_none() || second.is_none() || last.is_none();
        Turn { give, await_credits: if known { None } else { fourth.or(third) } }
    }
}

impl Turn {
    /// Gives and awaits credits.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn run<F: Fabric>(self, f: &F) -> Op {
        if let Some(credit) = self.give {
            for peer in (0..f.size()).map(Rank).filter(|&peer| peer != f.rank()) {
                f.credit(peer, credit).await?;
            }
        }
        if let Some(credit) = self.await_credits {
            f.await_credits(credit).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By the definition: two PEs, one as far ahead as its waits allow, the other at call `slow`.
    #[test]
    fn nobody_is_a_window_ahead() {
        let window = 16;
        for pattern in 0_u32..1 << 12 {
            let synchronizes = |call: u64| (call % 12) < 12 && pattern >> (call % 12) & 1 == 1;
            let mut flow = Flow::new(window);
            let mut synchronized = true; // nothing is under way before the first call
            let mut credit_of_quarter = Vec::new();
            for call in 0..96 {
                if call & flow.quarter_mask() == 0 {
                    let turn = flow.turn(std::mem::take(&mut synchronized));
                    if call > 0 {
                        credit_of_quarter.push(turn.give);
                    }
                    // What the fast PE knows the slow one to have left when it enters `call`.
                    let synchronizing = (0..call).rev().find(|&earlier| synchronizes(earlier));
                    let by_credit = turn.await_credits.map(|credit| {
                        let at = credit_of_quarter.iter().position(|&c| c == Some(credit));
                        4 * (at.expect("awaited credits are given") as u64 + 1)
                    });
                    let left = synchronizing.unwrap_or(0).max(by_credit.unwrap_or(0));
                    let last = call + 3;
                    assert!(left + window > last, "{pattern:b}: call {last}, left {left}");
                }
                synchronized |= synchronizes(call);
            }
        }
    }
}
