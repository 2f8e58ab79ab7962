//! Flow control: no PE enters call `n` before all have left call `n - W`.
//!
//! Call `n` uses the lines `n mod W` of each inbox whatever its algorithm, so this is what keeps
//! Loose calls, and a change of algorithm, from overwriting messages that are not read yet.
//!
//! The window is four quarters. When a PE has left the last call of a quarter it gives every peer a
//! credit, unless there was a call in the quarter that no PE could leave before all had entered it:
//! whoever is past such a call knows that all have left the calls before. All PEs make the same
//! calls, so all agree on which credits are given. Before quarter `k`, all must have left quarter
//! `k - 4`:
//!
//! | calls of quarters `k - 4` to `k - 1` | entering quarter `k` waits for |
//! | --- | --- |
//! | a nonblocking call in `k - 4` | the credits of quarter `k - 4` |
//! | otherwise: a synchronizing call in `k - 3`, `k - 2` or `k - 1` | nothing |
//! | no synchronizing call in any of the four | the credits of quarter `k - 4` |
//! | a synchronizing call in `k - 4` only | the credits of quarter `k - 3` |
//!
//! That all are past a call says nothing of nonblocking ones before it, which may be under way for
//! long. So a nonblocking call does not count as synchronizing; a quarter with one always gives a
//! credit; and each PE gives its credits in order, each when all its calls up to the quarter's last
//! are complete.
//!
//! Cost: nothing for calls that synchronize; for others `P - 1` additions a quarter.

use consort_fabric::{Credits, Op, Rank};

/// The kinds of calls that a quarter had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quarter {
    /// A blocking call that no PE leaves before all have entered.
    pub synchronized: bool,
    /// A nonblocking call.
    pub started: bool,
}

/// A quarter that is over, and the credit for it, if one is given.
#[derive(Clone, Copy, Debug)]
struct Past {
    quarter: Quarter,
    credit: Option<u64>,
}

/// One PE's account of its calls.
#[derive(Clone, Debug)]
pub struct Flow {
    quarter_calls: u64,
    /// The last four quarters, latest last.
    recent: [Past; 4],
    given: u64,
}

/// The credits that a PE gives and awaits before it enters the next quarter.
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
        assert!(window.is_power_of_two(), "a mask selects the quarter");
        // Before the first call nothing is under way.
        let quarter = Quarter { synchronized: true, started: false };
        let recent = [Past { quarter, credit: None }; 4];
        Self { quarter_calls: window / 4, recent, given: 0 }
    }

    /// A call whose number has none of these bits begins a quarter: a turn is due before it.
    #[must_use]
    pub const fn quarter_mask(&self) -> u64 {
        self.quarter_calls - 1
    }

    /// Ends a quarter of blocking calls, in which some call was entered or left by all together or
    /// none was, and says what is to be done before the next begins.
    pub fn turn(&mut self, synchronized: bool) -> Turn {
        self.turn_after(Quarter { synchronized, started: false })
    }

    /// Ends a quarter, and says what is to be done before the next begins.
    #[inline]
    pub fn turn_after(&mut self, quarter: Quarter) -> Turn {
        let give = (!quarter.synchronized || quarter.started).then_some(self.given);
        self.given += u64::from(give.is_some());
        self.recent.rotate_left(1);
        self.recent[3] = Past { quarter, credit: give };
        let [fourth, third, ..] = self.recent;
        let known = self.recent[1..].iter().any(|past| past.quarter.synchronized);
        let await_credits = if fourth.quarter.started {
            fourth.credit
        } else if known {
            None
        } else {
            fourth.credit.or(third.credit)
        };
        Turn { give, await_credits }
    }
}

impl Turn {
    /// Takes what is to be given, for a PE that gives it later: calls are still under way.
    pub fn take_credit(&mut self) -> Option<u64> {
        self.give.take()
    }

    /// Gives and awaits credits.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn run<F: Credits>(self, f: &F) -> Op {
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

    const WINDOW: u64 = 16;
    /// Calls after which a pattern begins again.
    const PERIOD: u32 = 12;

    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Loose,
        Synchronizing,
        Nonblocking,
    }

    /// By the definition: two PEs, one as far ahead as its waits allow, the other at the call that
    /// the first knows it to have entered, its nonblocking calls under way for as long as may be.
    fn nobody_is_a_window_ahead(kind: impl Fn(u64) -> Kind) -> Result<(), u64> {
        let mut flow = Flow::new(WINDOW);
        let mut quarter = Quarter { synchronized: true, started: false };
        let mut credit_of_quarter = Vec::new();
        let mut complete_by_credit = 0;
        let mut synchronizing = 0;
        for call in 0..4 * WINDOW {
            if call & flow.quarter_mask() == 0 {
                let turn = flow.turn_after(std::mem::take(&mut quarter));
                if call > 0 {
                    credit_of_quarter.push(turn.give);
                }
                // What the fast PE knows the slow one to have left when it enters `call`.
                if let Some(credit) = turn.await_credits {
                    let at = credit_of_quarter.iter().position(|&given| given == Some(credit));
                    let quarters = at.expect("awaited credits are given") as u64 + 1;
                    complete_by_credit = complete_by_credit.max(4 * quarters);
                }
                let last = call + 3;
                for earlier in
                    (last + 1).saturating_sub(2 * WINDOW)..(last + 1).saturating_sub(WINDOW)
                {
                    let is_left = kind(earlier) != Kind::Nonblocking && earlier < synchronizing;
                    if !is_left && earlier >= complete_by_credit {
                        return Err(earlier);
                    }
                }
            }
            match kind(call) {
                Kind::Loose => {}
                Kind::Synchronizing => {
                    quarter.synchronized = true;
                    synchronizing = call;
                }
                Kind::Nonblocking => quarter.started = true,
            }
        }
        Ok(())
    }

    #[test]
    fn in_no_pattern_of_calls_is_anybody_a_window_ahead() {
        for pattern in 0_u32..3_u32.pow(PERIOD) {
            let kinds: [Kind; PERIOD as usize] = std::array::from_fn(|at| {
                match pattern / 3_u32.pow(u32::try_from(at).expect("a small number")) % 3 {
                    0 => Kind::Loose,
                    1 => Kind::Synchronizing,
                    _ => Kind::Nonblocking,
                }
            });
            let kind = |call: u64| kinds[usize::try_from(call).expect("small") % kinds.len()];
            let outcome = nobody_is_a_window_ahead(kind);
            assert!(outcome.is_ok(), "pattern {pattern}: call {outcome:?} may still be under way");
        }
    }
}
