//! Flow control: no PE enters call `n` before all have left call `n - W`.
//!
//! Call `n` uses the lines `n mod W` of each inbox, no matter which algorithm it has. So flow
//! control prevents Loose calls, or a change of algorithm, from overwriting unread messages.
//!
//! The window has four quarters. When a PE has left the last call of a quarter, it gives every peer
//! a credit, unless the quarter had a synchronizing call. No PE leaves such a call before all have
//! entered it, so afterwards a PE knows that all PEs have left the earlier calls. All PEs make the
//! same calls, so they agree on which credits are given. Before quarter `k`, all PEs must have left
//! quarter `k - 4`:
//!
//! | calls of quarters `k - 4` to `k - 1` | entering quarter `k` waits for |
//! | --- | --- |
//! | a nonblocking call in `k - 4` | the credits of quarter `k - 4` |
//! | otherwise: a synchronizing call in `k - 3`, `k - 2` or `k - 1` | nothing |
//! | no synchronizing call in any of the four | the credits of quarter `k - 4` |
//! | a synchronizing call in `k - 4` only | the credits of quarter `k - 3` |
//!
//! When all PEs have left a call, earlier nonblocking calls may still be pending for a long time.
//! So a nonblocking call does not count as synchronizing, and a PE always gives a credit for a
//! quarter with one. Each PE gives its credits in order, each when all its calls up to the end of
//! the quarter are complete.
//!
//! In a team of more than 8 PEs, credits go in two steps: see `CreditTargets::InSteps`.
//!
//! Cost: nothing for calls that synchronize. For others, a PE makes `P - 1` additions per quarter;
//! in two steps, about twice the square root of `P`.

use consort_fabric::{Credit, Credits, Op, Rank};

/// The largest team in which a PE gives credits to all peers at once.
const MOST_AT_ONCE: usize = 8;

/// The kinds of calls that occurred in a quarter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quarter {
    /// A blocking call that no PE leaves before all have entered.
    pub synchronized: bool,
    /// A nonblocking call.
    pub started: bool,
}

/// The peers to which a PE gives credits for a quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CreditTargets {
    ToNone,
    ToAll,
    /// As in a dissemination barrier of two rounds (Hensgen, Finkel and Manber 1988). Let `G` be
    /// the square root of `P`, rounded up. After quarter `q` a PE gives a credit to each of the
    /// `G - 1` PEs after it. Before quarter `q + 2` it awaits the credits of the `G - 1` PEs before
    /// it, and gives a credit for all of them to every `G`-th PE after it. Before quarter `q + 3`
    /// it awaits these.
    ///
    /// PEs are then at most three quarters apart. A PE that waits for the first step must not wait
    /// for a nonblocking call, which may be pending for a long time. So if one of the last four
    /// quarters had a nonblocking call, each PE gives its credits to all.
    InSteps,
}

#[derive(Clone, Copy, Debug)]
struct PastQuarter {
    quarter: Quarter,
    given: CreditTargets,
}

/// One PE's account of its calls.
#[derive(Clone, Debug)]
pub struct Flow {
    quarter_calls: u64,
    has_steps: bool,
    /// The last four quarters, latest last.
    recent: [PastQuarter; 4],
    over: u64,
}

/// The credits that a PE gives and awaits before it enters the next quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarterCredits {
    /// The number of the quarter that is over.
    last: u64,
    /// For the last quarter.
    give: CreditTargets,
    /// Credits that all peers must have given.
    await_all: Option<u64>,
    /// The second step for the quarter before the last.
    passes_on: bool,
    /// The end of the second step for the quarter before that.
    awaits_groups: bool,
}

impl Flow {
    /// Creates the account for a window of `window` calls, a power of two and at least 4, in a team
    /// of `pes` PEs.
    #[must_use]
    pub fn new(window: u64, pes: usize) -> Self {
        Self::with(window, pes > MOST_AT_ONCE)
    }

    fn with(window: u64, has_steps: bool) -> Self {
        assert!(window >= 4, "a window has four quarters");
        assert!(window.is_power_of_two(), "a mask selects the quarter");
        // No call is pending before the first one.
        let quarter = Quarter { synchronized: true, started: false };
        let recent = [PastQuarter { quarter, given: CreditTargets::ToNone }; 4];
        Self { quarter_calls: window / 4, has_steps, recent, over: 0 }
    }

    /// Returns the mask of a call's number: if no masked bit is set, the call begins a quarter, and
    /// a turn is due before it.
    #[must_use]
    pub const fn quarter_mask(&self) -> u64 {
        self.quarter_calls - 1
    }

    /// Ends a quarter of blocking calls, and returns what to do before the next one begins.
    /// `synchronized` is whether the quarter had a synchronizing call.
    pub fn turn(&mut self, synchronized: bool) -> QuarterCredits {
        self.turn_after(Quarter { synchronized, started: false })
    }

    /// Ends a quarter, and returns what to do before the next one begins.
    #[inline]
    pub fn turn_after(&mut self, quarter: Quarter) -> QuarterCredits {
        let [_, fourth, third, second] = self.recent;
        let started = |past: &PastQuarter| past.quarter.started;
        let given = if quarter.synchronized && !quarter.started {
            CreditTargets::ToNone
        } else if quarter.started || !self.has_steps || [fourth, third, second].iter().any(started)
        {
            CreditTargets::ToAll
        } else {
            CreditTargets::InSteps
        };
        let latest = PastQuarter { quarter, given };
        self.recent = [fourth, third, second, latest];
        let last = self.over;
        self.over += 1;
        let known = self.recent[1..].iter().any(|past| past.quarter.synchronized);
        let await_all = if fourth.quarter.started || !known && fourth.given == CreditTargets::ToAll
        {
            last.checked_sub(3)
        } else if !known
            && fourth.given == CreditTargets::ToNone
            && third.given == CreditTargets::ToAll
        {
            last.checked_sub(2)
        } else {
            None
        };
        // A PE past a synchronizing call already knows what further steps would report.
        let passes_on = second.given == CreditTargets::InSteps && !latest.quarter.synchronized;
        let awaits_groups = third.given == CreditTargets::InSteps
            && !second.quarter.synchronized
            && !latest.quarter.synchronized;
        QuarterCredits { last, give: latest.given, await_all, passes_on, awaits_groups }
    }
}

impl QuarterCredits {
    /// Takes the credit for all peers, if there is one, because calls are still pending and the PE
    /// must give it later.
    pub fn take_credit(&mut self) -> Option<u64> {
        let is_to_all = self.give == CreditTargets::ToAll;
        is_to_all.then(|| {
            self.give = CreditTargets::ToNone;
            self.last
        })
    }

    /// Returns by how many quarters the next one follows the quarter that a peer enters when it
    /// gives the credits that are awaited now.
    #[must_use]
    pub const fn quarters_since(&self) -> u64 {
        if self.passes_on || self.awaits_groups { 1 } else { 2 }
    }

    /// Gives and awaits credits.
    ///
    /// # Errors
    /// If the job has failed.
    pub async fn run<F: Credits>(self, f: &F) -> Op {
        let pes = f.size();
        let given_at_once = match self.give {
            CreditTargets::ToNone => 1..1,
            CreditTargets::InSteps => 1..root(pes),
            CreditTargets::ToAll => 1..pes,
        };
        for by in given_at_once {
            f.credit(after(f, by), Credit::Own, self.last).await?;
        }
        if let Some(quarter) = self.await_all {
            f.await_credits((1..pes).map(before(f)), Credit::Own, quarter).await?;
        }
        if self.passes_on || self.awaits_groups { self.go_on(f).await } else { Ok(()) }
    }

    /// Continues the steps of earlier quarters.
    async fn go_on<F: Credits>(self, f: &F) -> Op {
        let group = root(f.size());
        let others = (group..f.size()).step_by(group as usize);
        if self.passes_on {
            let quarter = self.last - 1;
            f.await_credits((1..group).map(before(f)), Credit::Own, quarter).await?;
            for by in others.clone() {
                f.credit(after(f, by), Credit::Group, quarter).await?;
            }
        }
        if self.awaits_groups {
            f.await_credits(others.map(before(f)), Credit::Group, self.last - 2).await?;
        }
        Ok(())
    }
}

fn after(f: &impl Credits, by: u32) -> Rank {
    let rank = f.rank().0 + by;
    Rank(if rank < f.size() { rank } else { rank - f.size() })
}

/// Returns the PE a given number of ranks before this one.
fn before<F: Credits>(f: &F) -> impl Fn(u32) -> Rank + Clone + Unpin + use<F> {
    let (rank, pes) = (f.rank().0, f.size());
    move |by| Rank(if by <= rank { rank - by } else { rank + pes - by })
}

/// Returns the square root of a number of PEs, rounded up.
fn root(pes: u32) -> u32 {
    let root = pes.isqrt();
    if root * root == pes { root } else { root + 1 }
}

#[cfg(test)]
mod tests {
    use std::iter::repeat_n;

    use super::*;

    const WINDOW: u64 = 16;

    #[derive(Clone, Copy, PartialEq)]
    enum CallKind {
        Loose,
        Synchronizing,
        Nonblocking,
    }

    /// Checks the definition with two PEs. One is as far ahead as its waits allow. The other is at
    /// the call that the first knows it to have entered, and its nonblocking calls stay pending as
    /// long as possible. If credits go in steps, only the last step informs the first of the other.
    fn nobody_is_a_window_ahead(
        kind: impl Fn(u64) -> CallKind,
        has_steps: bool,
    ) -> Result<(), u64> {
        let mut flow = Flow::with(WINDOW, has_steps);
        let mut quarter = Quarter { synchronized: true, started: false };
        // The quarters for which credits have been given, to all and in each step.
        let (mut to_all, mut first, mut passed_on) = (Vec::new(), Vec::new(), Vec::new());
        let mut complete_by_credit = 0;
        let mut synchronizing = 0;
        for call in 0..4 * WINDOW {
            if call & flow.quarter_mask() == 0 {
                let turn = flow.turn_after(std::mem::take(&mut quarter));
                // The quarter before the first call gives no credits.
                if call > 0 {
                    match turn.give {
                        CreditTargets::ToNone => {}
                        CreditTargets::ToAll => to_all.push(turn.last),
                        CreditTargets::InSteps => {
                            let of_window = (call - WINDOW.min(call))..call;
                            assert!(
                                of_window.clone().all(|call| kind(call) != CallKind::Nonblocking)
                            );
                            first.push(turn.last);
                        }
                    }
                }
                // The calls that the fast PE knows the slow one to have left when it enters `call`.
                if let Some(quarter) = turn.await_all {
                    assert!(to_all.contains(&quarter), "awaited credits are given");
                    complete_by_credit = complete_by_credit.max(4 * quarter);
                }
                if turn.passes_on {
                    assert!(first.contains(&(turn.last - 1)), "the first step comes first");
                    passed_on.push(turn.last - 1);
                }
                if turn.awaits_groups {
                    assert!(passed_on.contains(&(turn.last - 2)), "awaited credits are given");
                    complete_by_credit = complete_by_credit.max(4 * (turn.last - 2));
                }
                let last = call + 3;
                for earlier in
                    (last + 1).saturating_sub(2 * WINDOW)..(last + 1).saturating_sub(WINDOW)
                {
                    let is_left = kind(earlier) != CallKind::Nonblocking && earlier < synchronizing;
                    if !is_left && earlier >= complete_by_credit {
                        return Err(earlier);
                    }
                }
            }
            match kind(call) {
                CallKind::Loose => {}
                CallKind::Synchronizing => {
                    quarter.synchronized = true;
                    synchronizing = call;
                }
                CallKind::Nonblocking => quarter.started = true,
            }
        }
        Ok(())
    }

    /// Checks all patterns of `count` calls, each before `loose` loose calls.
    fn check_patterns(count: u32, loose: usize) {
        for pattern in 0_u32..3_u32.pow(count) {
            let kinds = (0..count).flat_map(|at| {
                let kind = match pattern / 3_u32.pow(at) % 3 {
                    0 => CallKind::Loose,
                    1 => CallKind::Synchronizing,
                    _ => CallKind::Nonblocking,
                };
                [kind].into_iter().chain(repeat_n(CallKind::Loose, loose))
            });
            let kinds: Vec<CallKind> = kinds.collect();
            let kind = |call: u64| kinds[usize::try_from(call).expect("small") % kinds.len()];
            for has_steps in [false, true] {
                let outcome = nobody_is_a_window_ahead(kind, has_steps);
                assert!(
                    outcome.is_ok(),
                    "pattern {pattern}, steps {has_steps}: call {outcome:?} may be under way"
                );
            }
        }
    }

    #[test]
    fn no_pe_gets_a_window_ahead_in_any_pattern() {
        check_patterns(12, 0);
    }

    /// The patterns are longer than a window, so a quarter may differ from that four before it.
    #[test]
    fn no_pe_gets_a_window_ahead_in_any_pattern_of_quarters() {
        check_patterns(7, 3);
    }
}
