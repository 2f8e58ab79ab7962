//! Refines a choice while a program runs: from time to time, another candidate serves a few calls.
//!
//! | phase | calls | then |
//! | --- | --- | --- |
//! | probe | a few by the incumbent, as many by a challenger | a far slower challenger is dropped |
//! | duel | several rounds of both, in turn | a clearly faster challenger takes over |
//! | rest | enough to pay for probe and duel | the next challenger |
//!
//! All PEs make the same calls, so their counts of calls agree. The caller adds up the times of all
//! PEs before a decision ([`Refinement::decide`]), so all decide alike. A challenger must be faster
//! in most rounds and by a margin; otherwise two equally good candidates would alternate forever.
//! Once all have been tried, challengers that were almost as fast are tried again after longer and
//! longer rests, because machines change.
//!
//! The result is an entry of wisdom like one from tuning ([`Refinement::found`]).

use consort_fabric::{CallSpec, Candidate};

use crate::{
    Confidence, Entry, Rigour, RunnerUp, select::lookup_query, times::rounded_ns,
    wisdom::MOST_CONTENDERS,
};

const ROUNDS: usize = 5;
/// The number of measured times that the PEs add up: one for each contender in each round.
pub const TIMES: usize = 2 * ROUNDS;
/// The rounds that a challenger must win.
const WON: usize = 4;
/// A challenger takes over if its median is below this share of the incumbent's.
const CLEARLY: f64 = 0.95;
/// A challenger is dropped if it takes this many times as long in the probe.
const HOPELESS: f64 = 2.0;
/// A challenger is tried again if it took at most this many times as long. Tuning keeps such
/// candidates as contenders.
pub(crate) const NEAR: f64 = 1.3;
const PROBE_CALLS: u32 = 4;
/// The intended time of a block of a duel, in nanoseconds: much longer than a clock reading.
const BLOCK_NS: f64 = 20_000.0;
const MOST_CALLS: f64 = 256.0;
/// The factor by which each rest grows, once all candidates have been tried.
const REST_GROWTH: f64 = 4.0;
/// The smallest share: with a share of 0, a rest would never end.
const LEAST_SHARE: f64 = 1e-6;
/// The largest number of calls in a rest.
const MOST_REST: f64 = 1e9;

/// The next step of a refinement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefinementStep {
    /// The incumbent serves this many calls from now on, untimed.
    Rest(u64),
    /// The candidate with this index serves the next call. The caller passes the time to
    /// [`Refinement::record_time`].
    Try(usize),
    /// The caller adds up the times of all PEs and calls [`Refinement::decide`] before the next
    /// call.
    Decide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Probe,
    Duel,
}

/// The result of a challenger so far.
#[derive(Clone, Copy, Debug, PartialEq)]
enum DuelResult {
    Untried,
    /// It took this many times as long as its incumbent.
    Took(f64),
}

/// The refinement of the choice for one kind of call.
#[derive(Clone, Debug)]
pub struct Refinement {
    candidates: Vec<Candidate>,
    results: Vec<DuelResult>,
    /// The time of a call by each candidate in its last try, in nanoseconds.
    took_ns: Vec<Option<f64>>,
    incumbent: usize,
    challenger: Option<usize>,
    phase: Phase,
    /// Completed calls of the current block, and calls of a whole block.
    done: u32,
    calls: u32,
    /// Completed blocks, and the times of all blocks in nanoseconds.
    blocks: usize,
    times_ns: [u64; TIMES],
    /// The share of the time in calls that may be lost.
    share: f64,
    /// The time of a call by the incumbent, and the loss not yet paid for by rests, in nanoseconds.
    call_ns: f64,
    owed_ns: f64,
    /// The shortest and the longest time of a call by the incumbent in the rounds of its last duel.
    range_ns: Option<(f64, f64)>,
    rest: Option<u64>,
    passes: i32,
}

impl Refinement {
    /// Refines the choice among `candidates`. The first one serves, and the others are tried in
    /// order. Trying costs at most `share` of the time in calls of this kind, plus the time of one
    /// try: rests pay for a try after it.
    #[must_use]
    pub fn new(candidates: Vec<Candidate>, share: f64) -> Self {
        let results = vec![DuelResult::Untried; candidates.len()];
        let mut new = Self {
            took_ns: vec![None; candidates.len()],
            candidates,
            results,
            incumbent: 0,
            challenger: None,
            phase: Phase::Probe,
            done: 0,
            calls: PROBE_CALLS,
            blocks: 0,
            times_ns: [0; TIMES],
            // NaN becomes the smallest share too.
            share: if share > LEAST_SHARE { share.min(1.0) } else { LEAST_SHARE },
            call_ns: 0.0,
            owed_ns: 0.0,
            range_ns: None,
            rest: None,
            passes: 0,
        };
        new.challenge();
        new
    }

    /// Returns the candidates, in the order of their indices.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// Returns the index of the candidate that serves calls.
    #[must_use]
    pub fn incumbent(&self) -> usize {
        self.incumbent
    }

    /// Returns the result for such a call, as an entry of wisdom; `None` before the first duel. Its
    /// interval is that of the rounds of the last duel.
    #[must_use]
    pub fn found(&self, call: &CallSpec) -> Option<Entry> {
        let (low_ns, high_ns) = self.range_ns?;
        let others = (0..self.candidates.len()).filter(|&index| index != self.incumbent);
        let ratio = |index: usize| Some((index, self.took_ns[index]? / self.call_ns));
        let mut tried: Vec<(usize, f64)> = others.filter_map(ratio).collect();
        tried.sort_unstable_by(|(a, one), (b, other)| one.total_cmp(other).then(a.cmp(b)));
        let mut tried = tried.into_iter();
        let second = tried.next();
        let near = tried.filter(|(_, ratio)| *ratio < NEAR).take(MOST_CONTENDERS);
        let is_clear = |ratio: f64| ratio * CLEARLY > 1.0;
        let median_ns = rounded_ns(self.call_ns);
        let runner_up = second.map(|(index, ratio)| RunnerUp {
            candidate: self.candidates[index].clone(),
            median_ns: rounded_ns(self.call_ns * ratio.max(1.0)),
        });
        Some(Entry {
            query: lookup_query(call),
            choice: self.candidates[self.incumbent].clone(),
            median_ns,
            ci95_ns: Some((rounded_ns(low_ns).min(median_ns), rounded_ns(high_ns).max(median_ns))),
            runner_up,
            contenders: near.map(|(index, _)| self.candidates[index].clone()).collect(),
            class: None,
            confidence: match second {
                None => Confidence::Alone,
                Some((_, ratio)) if is_clear(ratio) => Confidence::Clear,
                Some(_) => Confidence::Tie,
            },
            rigour: Rigour::Measure,
            undisturbed: 1.0,
            busy: None,
        })
    }

    /// Excludes a candidate that proved unable to serve the calls.
    pub fn drop_candidate(&mut self, index: usize) {
        self.results[index] = DuelResult::Took(f64::INFINITY);
        self.took_ns[index] = None;
        self.begin(Phase::Probe);
        self.challenge();
    }

    /// Returns the next step.
    pub fn advance(&mut self) -> RefinementStep {
        if let Some(rest) = self.rest.take() {
            return RefinementStep::Rest(rest);
        }
        let Some(challenger) = self.challenger else { return RefinementStep::Rest(u64::MAX) };
        if self.blocks == self.phase.blocks() {
            return RefinementStep::Decide;
        }
        RefinementStep::Try(if self.blocks.is_multiple_of(2) { self.incumbent } else { challenger })
    }

    /// Records the time of a tried call on this PE, in nanoseconds.
    pub fn record_time(&mut self, call_ns: u64) {
        self.times_ns[self.blocks] += call_ns;
        self.done += 1;
        if self.done == self.calls {
            self.done = 0;
            self.blocks += 1;
        }
    }

    /// Returns the times of this PE, for [`RefinementStep::Decide`].
    #[must_use]
    pub fn times_ns(&self) -> [u64; TIMES] {
        self.times_ns
    }

    /// Decides by the times, summed over all `pes` PEs.
    pub fn decide(&mut self, sums_ns: &[u64; TIMES], pes: u32) {
        let Some(challenger) = self.challenger else { return };
        let calls = f64::from(self.calls) * f64::from(pes.max(1));
        let of = |block: usize| (sums_ns[block] as f64 / calls).max(1.0);
        let rounds = (0..self.phase.blocks() / 2).map(|round| (of(2 * round), of(2 * round + 1)));
        let rounds: Vec<(f64, f64)> = rounds.collect();
        let middle = |mut times: Vec<f64>| {
            times.sort_unstable_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let own_ns = middle(rounds.iter().map(|&(own, _)| own).collect());
        let ratio = middle(rounds.iter().map(|&(own, other)| other / own).collect());
        let range = |times: Vec<f64>| {
            times.into_iter().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), time| {
                (low.min(time), high.max(time))
            })
        };
        let own_range = range(rounds.iter().map(|&(own, _)| own).collect());
        let other_range = range(rounds.iter().map(|&(_, other)| other).collect());
        let won = rounds.iter().filter(|&&(own, other)| other < own).count();
        // The challenger's excess, and two calls of the incumbent for adding up the times.
        let lost_ns = rounds.iter().map(|&(own, other)| (other - own).max(0.0)).sum::<f64>();
        self.owed_ns += lost_ns * f64::from(self.calls) + 2.0 * own_ns;
        self.call_ns = own_ns;
        self.results[challenger] = DuelResult::Took(ratio);
        self.took_ns[challenger] = Some(own_ns * ratio);
        self.took_ns[self.incumbent] = Some(own_ns);
        if self.phase == Phase::Probe && ratio < HOPELESS {
            self.begin(Phase::Duel);
            return;
        }
        if self.phase == Phase::Duel {
            self.range_ns = Some(own_range);
        }
        if self.phase == Phase::Duel && won >= WON && ratio < CLEARLY {
            self.range_ns = Some(other_range);
            self.results[self.incumbent] = DuelResult::Took(1.0 / ratio);
            self.incumbent = challenger;
            self.call_ns *= ratio;
        }
        self.begin(Phase::Probe);
        self.challenge();
        // The number of calls after which `share` of their time equals the loss.
        let rest = (self.owed_ns / self.share / self.call_ns).ceil();
        let rest = rest * REST_GROWTH.powi((self.passes - 1).clamp(0, 12));
        self.owed_ns = 0.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in the range")]
        let rest = rest.clamp(1.0, MOST_REST) as u64;
        self.rest = Some(rest);
    }

    fn begin(&mut self, phase: Phase) {
        self.phase = phase;
        self.times_ns = [0; TIMES];
        (self.done, self.blocks) = (0, 0);
        let fitting = (BLOCK_NS / self.call_ns.max(1.0)).clamp(f64::from(PROBE_CALLS), MOST_CALLS);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in the range")]
        let fitting = fitting as u32;
        self.calls = if phase == Phase::Duel { fitting } else { PROBE_CALLS };
    }

    /// Selects the next challenger: an untried one, otherwise one that came near in its last try.
    fn challenge(&mut self) {
        let others = || (0..self.candidates.len()).filter(|&index| index != self.incumbent);
        let is_untried = |&index: &usize| self.results[index] == DuelResult::Untried;
        if let Some(untried) = others().find(is_untried) {
            self.challenger = Some(untried);
            return;
        }
        let came_near =
            |&index: &usize| matches!(self.results[index], DuelResult::Took(ratio) if ratio < NEAR);
        let again: Vec<usize> = others().filter(came_near).collect();
        self.passes += 1;
        for &index in &again {
            self.results[index] = DuelResult::Untried;
        }
        self.challenger = again.first().copied();
    }
}

impl Phase {
    /// Returns the number of blocks of calls in this phase.
    const fn blocks(self) -> usize {
        match self {
            Self::Probe => 2,
            Self::Duel => TIMES,
        }
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::Collective;

    use super::*;

    fn candidates(count: u64) -> Vec<Candidate> {
        (0..count).map(|value| Candidate::new("tree").with("radix", value)).collect()
    }

    /// Simulates `calls` calls. `call_ns` returns the time of a call, given its candidate and
    /// number. Returns the total time.
    fn play(
        refinement: &mut Refinement,
        calls: u64,
        mut call_ns: impl FnMut(usize, u64) -> u64,
    ) -> u64 {
        let (mut call, mut sum_ns) = (0, 0);
        while call < calls {
            match refinement.advance() {
                RefinementStep::Rest(rest) => {
                    let end = calls.min(call.saturating_add(rest));
                    sum_ns +=
                        (call..end).map(|call| call_ns(refinement.incumbent(), call)).sum::<u64>();
                    call = end;
                }
                RefinementStep::Try(index) => {
                    let took = call_ns(index, call);
                    refinement.record_time(took);
                    sum_ns += took;
                    call += 1;
                }
                RefinementStep::Decide => {
                    let times = refinement.times_ns();
                    refinement.decide(&times, 1);
                    sum_ns += 2 * call_ns(refinement.incumbent(), call);
                }
            }
        }
        sum_ns
    }

    #[test]
    fn best_candidate_is_found_starting_from_the_worst() {
        let times = [5000, 700, 400, 900, 4000];
        let mut refinement = Refinement::new(candidates(5), 0.05);
        play(&mut refinement, 20_000, |index, _| times[index]);
        assert_eq!(refinement.incumbent(), 2);
        assert!(refinement.passes > 0, "every candidate has been tried");
    }

    #[test]
    fn refinement_result_is_an_entry() {
        let call =
            CallSpec { collective: Collective::Broadcast, bytes: 64, ..CallSpec::barrier(4) };
        let times = [5000, 700, 400, 440, 500];
        let mut refinement = Refinement::new(candidates(5), 0.05);
        assert_eq!(refinement.found(&call), None);
        play(&mut refinement, 20_000, |index, _| times[index]);
        let entry = refinement.found(&call).expect("duels were fought");
        assert_eq!(entry.flaw(), None, "{entry:?}");
        let tree = |radix| Candidate::new("tree").with("radix", radix);
        assert_eq!((&entry.choice, entry.median_ns), (&tree(2), 400.0));
        assert_eq!(entry.ci95_ns, Some((400.0, 400.0)));
        let second = entry.runner_up.as_ref().expect("others were tried");
        assert_eq!((&second.candidate, second.median_ns), (&tree(3), 440.0));
        assert_eq!(
            (entry.contenders.as_slice(), entry.confidence),
            (&[tree(4)][..], Confidence::Clear)
        );
        assert_eq!((entry.query.bytes, entry.query.pes), (64, 4));
    }

    #[test]
    fn trying_costs_no_more_than_its_share() {
        for share in [0.01, 0.05, 0.2] {
            for worst in [150, 1000, 100_000] {
                let times = [100, worst, worst, 120, worst];
                let mut refinement = Refinement::new(candidates(5), share);
                // The last rest may not have ended, so one probe and one duel may not be paid for.
                let first = 4 * worst + 5 * 20_000 + 2000;
                for calls in [1000, 10_000, 100_000, 1_000_000] {
                    let mut refinement = refinement.clone();
                    let took = play(&mut refinement, calls, |index, _| times[index]);
                    let alone = calls * 100;
                    let most = alone as f64 * (1.0 + share) + first as f64;
                    assert!(took as f64 <= most, "{share} {worst} {calls}: {took} of {most}");
                }
                play(&mut refinement, 1, |index, _| times[index]);
            }
        }
    }

    /// It is much faster in the other rounds, so the medians alone would accept it.
    #[test]
    fn challenger_that_loses_two_of_five_rounds_is_rejected() {
        for (lost, incumbent) in [(1, 1), (2, 0)] {
            let mut refinement = Refinement::new(candidates(2), 0.5);
            refinement.decide(&[1000; TIMES], 1); // the probe
            let sums_ns = std::array::from_fn(|block| match (block % 2, block / 2 < lost) {
                (0, _) => 1000,
                (_, true) => 2000,
                (_, false) => 500,
            });
            refinement.decide(&sums_ns, 1);
            assert_eq!(refinement.incumbent(), incumbent, "{lost} rounds lost");
        }
    }

    /// Two candidates that differ by less than the noise do not take turns.
    #[test]
    fn equal_candidates_do_not_alternate() {
        let mut refinement = Refinement::new(candidates(2), 0.5);
        let (mut changes, mut last, mut noise) = (0, 0, 7_u64);
        for _ in 0..200 {
            play(&mut refinement, 500, |index, _| {
                noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                1000 + 10 * index as u64 + (noise >> 33) % 100
            });
            changes += u32::from(refinement.incumbent() != last);
            last = refinement.incumbent();
        }
        assert_eq!(changes, 0);
    }

    #[test]
    fn change_of_the_machine_is_noticed() {
        let mut refinement = Refinement::new(candidates(2), 0.2);
        let took =
            |index: usize, call: u64| if (index == 0) == (call < 50_000) { 100 } else { 125 };
        play(&mut refinement, 50_000, took);
        assert_eq!(refinement.incumbent(), 0);
        play(&mut refinement, 10_000_000, |index, call| took(index, call + 50_000));
        assert_eq!(refinement.incumbent(), 1);
    }

    #[test]
    fn invalid_share_costs_almost_nothing() {
        for share in [0.0, -1.0, f64::NAN] {
            let mut refinement = Refinement::new(candidates(3), share);
            let took = play(&mut refinement, 100_000, |index, _| 100 + 10 * index as u64);
            assert!(took < 100_000 * 100 + 250_000, "{share}: {took}");
        }
    }

    #[test]
    fn single_candidate_is_not_challenged() {
        let mut refinement = Refinement::new(candidates(1), 0.1);
        assert_eq!(refinement.advance(), RefinementStep::Rest(u64::MAX));
        let mut refinement = Refinement::new(candidates(2), 0.1);
        assert_eq!(refinement.advance(), RefinementStep::Try(0));
        refinement.drop_candidate(1);
        assert_eq!(refinement.advance(), RefinementStep::Rest(u64::MAX));
    }
}
