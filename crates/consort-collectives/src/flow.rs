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
//! In a team of more than 8 PEs, credits go in two steps, which `Given::InSteps` explains.
//!
//! Cost: nothing for calls that synchronize; for others `P - 1` additions a quarter, or in steps
//! about twice the root of `P`.

use consort_fabric::{Credit, Credits, Op, Rank};

/// The largest team in which a PE gives its credits to all peers at once.
const MOST_AT_ONCE: usize = 8;

/// The kinds of calls that a quarter had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quarter {
    /// A blocking call that no PE leaves before all have entered.
    pub synchronized: bool,
    /// A nonblocking call.
    pub started: bool,
}

/// To whom a PE gives credits for a quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    ToNone,
    ToAll,
    /// As in a dissemination barrier of two rounds (Hensgen, Finkel and Manber 1988). With `G` the
    /// root of `P`, rounded up: after quarter `q` a PE gives a credit to each of the `G - 1` PEs
    /// after it. Before quarter `q + 2` it awaits those of the `G - 1` PEs before it, and gives a
    /// credit for all of them to every `G`-th PE after it. Before quarter `q + 3` it awaits these.
    ///
    /// PEs are then at most three quarters apart. A PE that waits for the first step must not wait
    /// for a nonblocking call, which may be under way for long: where one of the last four quarters
    /// had one, each PE gives its credits to all.
    InSteps,
}

/// A quarter that is over.
#[derive(Clone, Copy, Debug)]
struct Past {
    quarter: Quarter,
    given: Given,
}

/// One PE's account of its calls.
#[derive(Clone, Debug)]
pub struct Flow {
    quarter_calls: u64,
    has_steps: bool,
    /// The last four quarters, latest last.
    recent: [Past; 4],
    /// The number of quarters that are over.
    over: u64,
}

/// The credits that a PE gives and awaits before it enters the next quarter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The number of the quarter that is over.
    last: u64,
    /// For the last quarter.
    give: Given,
    /// Credits of all peers.
    await_all: Option<u64>,
    /// The second step for the quarter before the last.
    passes_on: bool,
    /// The end of the second step for the quarter before that.
    awaits_groups: bool,
}

impl Flow {
    /// For a window of so many calls, a power of two from 4 on, in a team of so many PEs.
    #[must_use]
    pub fn new(window: u64, pes: usize) -> Self {
        Self::with(window, pes > MOST_AT_ONCE)
    }

    fn with(window: u64, has_steps: bool) -> Self {
        assert!(window >= 4, "a window has four quarters");
        assert!(window.is_power_of_two(), "a mask selects the quarter");
        // Before the first call nothing is under way.
        let quarter = Quarter { synchronized: true, started: false };
        let recent = [Past { quarter, given: Given::ToNone }; 4];
        Self { quarter_calls: window / 4, has_steps, recent, over: 0 }
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
        let [_, fourth, third, second] = self.recent;
        let started = |past: &Past| past.quarter.started;
        let given = if quarter.synchronized && !quarter.started {
            Given::ToNone
        } else if quarter.started || !self.has_steps || [fourth, third, second].iter().any(started)
        {
            Given::ToAll
        } else {
            Given::InSteps
        };
        let latest = Past { quarter, given };
        self.recent = [fourth, third, second, latest];
        let last = self.over;
        self.over += 1;
        let known = self.recent[1..].iter().any(|past| past.quarter.synchronized);
        let await_all = if fourth.quarter.started || !known && fourth.given == Given::ToAll {
            last.checked_sub(3)
        } else if !known && fourth.given == Given::ToNone && third.given == Given::ToAll {
            last.checked_sub(2)
        } else {
            None
        };
        // Whoever is past a synchronizing call knows what further steps would tell.
        let passes_on = second.given == Given::InSteps && !latest.quarter.synchronized;
        let awaits_groups = third.given == Given::InSteps
            && !second.quarter.synchronized
            && !latest.quarter.synchronized;
        Turn { last, give: latest.given, await_all, passes_on, awaits_groups }
    }
}

impl Turn {
    /// Takes the credit that all peers are to be given, for a PE that gives it later: calls are
    /// still under way.
    pub fn take_credit(&mut self) -> Option<u64> {
        let is_to_all = self.give == Given::ToAll;
        is_to_all.then(|| {
            self.give = Given::ToNone;
            self.last
        })
    }

    /// How many quarters ago a PE began one by giving what is awaited now.
    #[must_use]
    pub const fn quarters_since(&self) -> u64 {
        if self.passes_on || self.awaits_groups { 1 } else { 2 }
    }

    /// Gives and awaits credits.
    ///
    /// # Errors
    /// When the job has failed.
    pub async fn run<F: Credits>(self, f: &F) -> Op {
        let pes = f.size();
        let given_at_once = match self.give {
            Given::ToNone => 1..1,
            Given::InSteps => 1..root(pes),
            Given::ToAll => 1..pes,
        };
        for by in given_at_once {
            f.credit(after(f, by), Credit::Own, self.last).await?;
        }
        if let Some(quarter) = self.await_all {
            f.await_credits((1..pes).map(before(f)), Credit::Own, quarter).await?;
        }
        if self.passes_on || self.awaits_groups { self.go_on(f).await } else { Ok(()) }
    }

    /// Goes on with steps of earlier quarters.
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

/// The PE so many after this one.
fn after(f: &impl Credits, by: u32) -> Rank {
    let rank = f.rank().0 + by;
    Rank(if rank < f.size() { rank } else { rank - f.size() })
}

/// The PE so many before this one.
fn before<F: Credits>(f: &F) -> impl Fn(u32) -> Rank + Clone + Unpin + use<F> {
    let (rank, pes) = (f.rank().0, f.size());
    move |by| Rank(if by <= rank { rank - by } else { rank + pes - by })
}

/// The root of a number of PEs, rounded up.
fn root(pes: u32) -> u32 {
    let root = pes.isqrt();
    if root * root == pes { root } else { root + 1 }
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
    /// Where credits go in steps, the other is one that the first hears of by the last step.
    fn nobody_is_a_window_ahead(kind: impl Fn(u64) -> Kind, has_steps: bool) -> Result<(), u64> {
        let mut flow = Flow::with(WINDOW, has_steps);
        let mut quarter = Quarter { synchronized: true, started: false };
        // The quarters for which all have been given credits, and by each step.
        let (mut to_all, mut first, mut passed_on) = (Vec::new(), Vec::new(), Vec::new());
        let mut complete_by_credit = 0;
        let mut synchronizing = 0;
        for call in 0..4 * WINDOW {
            if call & flow.quarter_mask() == 0 {
                let turn = flow.turn_after(std::mem::take(&mut quarter));
                // Of the quarter before the first call nothing is told.
                if call > 0 {
                    match turn.give {
                        Given::ToNone => {}
                        Given::ToAll => to_all.push(turn.last),
                        Given::InSteps => {
                            let of_window = (call - WINDOW.min(call))..call;
                            assert!(of_window.clone().all(|call| kind(call) != Kind::Nonblocking));
                            first.push(turn.last);
                        }
                    }
                }
                // What the fast PE knows the slow one to have left when it enters `call`.
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
            for has_steps in [false, true] {
                let outcome = nobody_is_a_window_ahead(kind, has_steps);
                assert!(
                    outcome.is_ok(),
                    "pattern {pattern}, steps {has_steps}: call {outcome:?} may be under way"
                );
            }
        }
    }
}
