//! Finding an algorithm by its name.

use std::{
    any::type_name,
    hash::{Hash, Hasher},
};

use consort_fabric::{Candidate, Capabilities, Collective, MachineModel, Query};

use crate::{
    Algorithm, Description, Direction, Parameter, PlanError, Setting, Visitor, algorithm::schedule,
    all_gather, all_reduce, all_to_all, barrier, broadcast, compose::default_candidate, gather,
    reduce, reduce_scatter, scan, scatter,
};

/// Returns an item of a collective's registry: `NAMES`, or the result of `visit`.
macro_rules! registered {
    ($collective:expr, $item:ident $($arguments:tt)*) => {
        match $collective {
            Collective::Barrier => barrier::$item $($arguments)*,
            Collective::Broadcast => broadcast::$item $($arguments)*,
            Collective::Scatter => scatter::$item $($arguments)*,
            Collective::Gather => gather::$item $($arguments)*,
            Collective::AllGather => all_gather::$item $($arguments)*,
            Collective::AllToAll => all_to_all::$item $($arguments)*,
            Collective::Reduce => reduce::$item $($arguments)*,
            Collective::AllReduce => all_reduce::$item $($arguments)*,
            Collective::ReduceScatter => reduce_scatter::$item $($arguments)*,
            Collective::ScatterVector => scatter::vector::$item $($arguments)*,
            Collective::GatherVector => gather::vector::$item $($arguments)*,
            Collective::AllGatherVector => all_gather::vector::$item $($arguments)*,
            Collective::AllToAllVector => all_to_all::vector::$item $($arguments)*,
            Collective::Scan | Collective::ExclusiveScan => scan::$item $($arguments)*,
        }
    };
}

/// Returns the names of a collective's algorithms.
#[must_use]
pub const fn names(collective: Collective) -> &'static [&'static str] {
    registered!(collective, NAMES)
}

/// Visits an algorithm of the library.
///
/// # Errors
/// If no algorithm has this name.
pub fn visit<V: Visitor>(
    collective: Collective,
    name: &str,
    visitor: V,
) -> Result<V::Output, PlanError> {
    let found = registered!(collective, visit(name, visitor));
    found.ok_or_else(|| PlanError::UnknownAlgorithm {
        collective,
        name: name.to_owned(),
        known: names(collective).join(", "),
    })
}

/// An algorithm whose type is erased, for everything that needs no fabric.
pub(crate) struct ErasedAlgorithm {
    pub(crate) description: Description,
    pub(crate) direction: Direction,
    pub(crate) root_access_is_unordered: bool,
    /// Returns the name of the schedule's type.
    pub(crate) schedule_type: fn() -> &'static str,
    /// Passes all of one PE's schedule to a hasher.
    pub(crate) hash: fn(&Setting, &Candidate, &mut dyn Hasher) -> Result<(), PlanError>,
    check: fn(&Setting, &Candidate) -> Result<(), PlanError>,
    cost_ns: fn(&Query, &Candidate, &MachineModel) -> f64,
}

impl ErasedAlgorithm {
    const fn of<A: Algorithm>() -> Self {
        Self {
            description: A::DESCRIPTION,
            direction: A::DIRECTION,
            root_access_is_unordered: A::ROOT_ACCESS_IS_UNORDERED,
            schedule_type: type_name::<A::Schedule>,
            hash: |setting, candidate, mut hasher| {
                let schedule = schedule::<A>(setting, candidate)?;
                (A::steps(&schedule), A::synchronizes(&schedule)).hash(&mut hasher);
                schedule.hash(&mut hasher);
                Ok(())
            },
            check: check_of::<A>,
            cost_ns: A::cost_ns,
        }
    }
}

/// Returns an algorithm with its type erased.
///
/// # Errors
/// If no algorithm has this name.
pub(crate) fn erased(
    collective: Collective,
    name: &str,
) -> Result<&'static ErasedAlgorithm, PlanError> {
    struct EraseVisitor;
    impl Visitor for EraseVisitor {
        type Output = &'static ErasedAlgorithm;
        fn visit<A: Algorithm>(self) -> &'static ErasedAlgorithm {
            const { &ErasedAlgorithm::of::<A>() }
        }
    }
    visit(collective, name, EraseVisitor)
}

/// Returns the name and the parameters of an algorithm.
///
/// # Errors
/// If no algorithm has this name.
pub fn describe(collective: Collective, name: &str) -> Result<Description, PlanError> {
    Ok(erased(collective, name)?.description)
}

/// Returns the revision of every algorithm, by collective and name.
pub fn revisions() -> impl Iterator<Item = (Collective, &'static str, u32)> {
    Collective::EVERY.into_iter().flat_map(|collective| {
        described(collective).map(move |one| (collective, one.name, one.revision))
    })
}

/// Checks that a candidate has a schedule for a setting.
///
/// # Errors
/// If it has none, or there is no such candidate.
pub fn check(setting: &Setting, candidate: &Candidate) -> Result<(), PlanError> {
    (erased(setting.call.collective, &candidate.algorithm)?.check)(setting, candidate)
}

/// Checks that a candidate of algorithm `A`, in the registry or not, has a schedule for a setting.
///
/// # Errors
/// If it has none.
pub fn check_of<A: Algorithm>(setting: &Setting, candidate: &Candidate) -> Result<(), PlanError> {
    schedule::<A>(setting, candidate).map(drop)
}

/// Returns every candidate that can serve a query: all algorithms with all values that the tuner
/// tries.
#[must_use]
pub fn candidates(query: &Query, capabilities: Capabilities) -> Vec<Candidate> {
    let setting = Setting::of(query, capabilities);
    if !setting.is_addressable() {
        return Vec::new();
    }
    let collective = query.collective;
    let all = described(collective).flat_map(|one| {
        let is_of_parts = one.parts.iter().any(Option::is_some);
        if is_of_parts { of_parts(&one, capabilities.levels.depths()) } else { of_values(&one) }
    });
    all.filter(|candidate| check(&setting, candidate).is_ok()).collect()
}

fn described(collective: Collective) -> impl Iterator<Item = Description> {
    names(collective).iter().filter_map(move |name| describe(collective, name).ok())
}

/// Returns an algorithm with all parameter values that the tuner tries.
#[must_use]
pub fn of_values(&Description { name, parameters, .. }: &Description) -> Vec<Candidate> {
    let mut all = vec![Candidate::new(name)];
    for Parameter { name, values, .. } in parameters {
        let with = |candidate: &Candidate| {
            values.iter().map(|&value| candidate.clone().with(name, value)).collect()
        };
        all = all.iter().flat_map(|candidate| -> Vec<_> { with(candidate) }).collect();
    }
    all
}

/// Returns the candidates of an algorithm that is made of others: one part by each algorithm, the
/// other parts by the default. `depths` is how often the parts inside nodes and the part between
/// nodes can be divided again.
#[must_use]
pub fn of_parts(
    &Description { name, parts, .. }: &Description,
    depths: [usize; 2],
) -> Vec<Candidate> {
    let levels = (0..).zip(parts).filter_map(|(level, part)| Some((level, part?)));
    let parts: Vec<(usize, Collective)> = levels.collect();
    let default_parts: Vec<Candidate> =
        parts.iter().map(|&(_, part)| default_candidate(part)).collect();
    let whole = |parts: Vec<Candidate>| parts.into_iter().fold(Candidate::new(name), Candidate::of);
    let mut all = vec![whole(default_parts.clone())];
    for (index, &(level, part)) in parts.iter().enumerate() {
        let plain = |one: &Description| one.parts.iter().all(Option::is_none);
        let plain = described(part).filter(plain).flat_map(|one| of_values(&one));
        let [inside, around] = depths;
        let (is_divided, depths) = match level {
            1 => (around > 0, [0, around.saturating_sub(1)]),
            _ => (inside > 0, [inside.saturating_sub(1), 0]),
        };
        // No other algorithm of parts has the same name for the collective of its part.
        let divided = describe(part, name).ok().filter(|_| is_divided);
        let choices = plain.chain(divided.into_iter().flat_map(|one| of_parts(&one, depths)));
        for choice in choices.filter(|choice| *choice != default_parts[index]) {
            let mut parts = default_parts.clone();
            parts[index] = choice;
            all.push(whole(parts));
        }
    }
    all
}

/// Returns whether a candidate can serve a setting, that is, whether it has a schedule.
#[must_use]
pub fn serves(setting: &Setting, candidate: &Candidate) -> bool {
    setting.is_addressable() && check(setting, candidate).is_ok()
}

/// Returns the model's estimate of a candidate, in nanoseconds; infinite for an unknown one.
#[must_use]
pub fn estimate_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
    let algorithm = erased(query.collective, &candidate.algorithm);
    algorithm.map_or(f64::INFINITY, |algorithm| (algorithm.cost_ns)(query, candidate, model))
}

#[cfg(test)]
mod tests {
    use super::*;

    use consort_fabric::{CallSpec, OperatorClass, SyncModes};
    use std::{
        any::Any,
        time::{Duration, Instant},
    };

    use crate::protocols::exchange::{
        Rounds,
        tests::{setting, stored_len},
    };

    const CAPABILITIES: Capabilities = Capabilities::with_memory(256, 16 << 10, 64 << 10);

    /// Returns queries for all collectives with blocks of this size among a few PEs.
    fn queries(bytes: u64) -> Vec<Query> {
        let mut all = Vec::new();
        for collective in Collective::EVERY {
            for pes in [2, 3, 8] {
                for operator in [OperatorClass::Commutative, OperatorClass::Ordered] {
                    for symmetric in [false, true] {
                        let sync = SyncModes::STRICT;
                        all.push(Query { collective, sync, pes, bytes, operator, symmetric });
                    }
                }
            }
        }
        all
    }

    /// Counts the rounds or operations that a schedule stores, if it consists of rounds.
    struct StoredLength<'s>(&'s Setting, &'s Candidate);

    impl Visitor for StoredLength<'_> {
        type Output = Option<usize>;

        fn visit<A: Algorithm>(self) -> Option<usize> {
            let schedule: Box<dyn Any> = Box::new(A::schedule(self.0, self.1).ok()?);
            schedule.downcast_ref::<Rounds>().map(stored_len)
        }
    }

    #[test]
    fn a_schedule_is_no_larger_for_more_bytes() {
        let stored_len_of = |query: &Query, candidate: &Candidate| {
            let setting = Setting::of(query, CAPABILITIES);
            visit(query.collective, &candidate.algorithm, StoredLength(&setting, candidate))
                .ok()
                .flatten()
        };
        let mut compared = 0;
        for query in queries(1 << 20) {
            for candidate in candidates(&query, CAPABILITIES) {
                let Some(least) = stored_len_of(&query, &candidate) else { continue };
                for bytes in [1 << 30, (1 << 30) + 8, 1 << 40] {
                    let longer = Query { bytes, ..query };
                    let Some(kept) = stored_len_of(&longer, &candidate) else { continue };
                    // The last piece of a block may be shorter, and then has separate rounds.
                    assert!(kept <= 2 * least, "{candidate} {longer:?}: {kept}, and {least}");
                    compared += 1;
                }
            }
        }
        assert!(compared > 100, "{compared} schedules are of rounds");
    }

    #[test]
    fn choosing_takes_no_longer_for_more_bytes() {
        let model = MachineModel::typical(8);
        let took = |bytes| {
            let once = || {
                let begun = Instant::now();
                for query in queries(bytes) {
                    for candidate in candidates(&query, CAPABILITIES) {
                        assert!(estimate_ns(&query, &candidate, &model).is_finite());
                    }
                }
                begun.elapsed()
            };
            (0..3).map(|_| once()).min().unwrap_or_default()
        };
        let least = took(1 << 20);
        for bytes in [1 << 30, (1 << 30) + 8, 1 << 40] {
            let longer = took(bytes);
            // Generous, because other tests run at the same time: it once took hundreds of times.
            let limit = 10 * least + Duration::from_millis(100);
            assert!(longer < limit, "{bytes} B take {longer:?}, and 1 MiB {least:?}");
        }
    }

    #[test]
    fn impossible_sizes_are_refused() {
        for bytes in [(1 << 52) - 1, u64::MAX / 2, u64::MAX] {
            for query in queries(bytes) {
                let query = Query { pes: 1 << 20, ..query };
                assert_eq!(candidates(&query, CAPABILITIES), [], "{query:?}");
                let setting = Setting::of(&query, CAPABILITIES);
                let direct = Candidate::new("direct");
                assert!(!serves(&setting, &direct), "{query:?}");
            }
        }
    }

    /// An algorithm may refuse such sizes but must not miscount, and each collective has one that
    /// serves them.
    #[test]
    fn gigabytes_have_a_schedule() {
        for collective in Collective::EVERY {
            for (pes, sync) in
                [2, 3].into_iter().flat_map(|pes| SyncModes::every().map(move |s| (pes, s)))
            {
                let (bytes, operator) = (5 << 30 | 8, OperatorClass::Ordered);
                let query = Query { collective, sync, pes, bytes, operator, symmetric: false };
                let all = candidates(&query, CAPABILITIES);
                assert!(!all.is_empty(), "{collective} {sync} on {pes} PEs");
            }
        }
    }

    /// Messages that do not fit are divided, so algorithms in rounds work with small inboxes on
    /// every PE.
    #[test]
    fn rounds_serve_in_small_inboxes() {
        let always: fn(u32) -> bool = |_| true;
        for (collective, candidate, is_served) in [
            (Collective::AllGather, "ring", always),
            (Collective::AllGather, "flat", always),
            (Collective::AllGather, "bruck(radix=3)", always),
            (Collective::AllGather, "recursive_doubling", u32::is_power_of_two),
            (Collective::AllGather, "neighbour_exchange", |pes| pes.is_multiple_of(2)),
            (Collective::AllToAll, "pairwise", always),
            (Collective::ReduceScatter, "pairwise", always),
            (Collective::AllReduce, "rabenseifner", always),
            (Collective::AllReduce, "ring", always),
        ] {
            let candidate: Candidate = candidate.parse().expect("a candidate");
            for pes in (2..20).chain([33]).filter(|&pes| is_served(pes)) {
                for (bytes, lines) in [(70, 80), (100, 40)] {
                    for buffered in [true, false] {
                        let setting = setting(collective, pes, bytes, lines + 2 * pes, buffered);
                        let class = OperatorClass::Commutative;
                        let setting =
                            Setting { call: CallSpec { class, ..setting.call }, ..setting };
                        assert!(serves(&setting, &candidate), "{candidate} {setting:?}");
                    }
                }
            }
        }
    }
}
