//! Composition: two algorithms, one after the other, form an algorithm for a larger operation.
//!
//! An all-reduce is a reduction and a broadcast of its result, or a reduce-scatter and an
//! all-gather of the blocks. An all-gather is a gather and a broadcast. (Nishtala, Zheng, Hargrove
//! and Yelick 2011, section 3.5; with a broadcast, also Bala et al. 1995, section 4.2.) The parts
//! run unchanged. `Composed` has two fixed algorithms as parts, with the parameters of the whole;
//! `open` has any two. The second part works on the result that the first part has left in the
//! target: the whole result at PE 0, or each PE's block of it if the second part is an all-gather.
//! (The all-gather that consists of one broadcast per PE is in a separate file, and uses the same
//! `PartFabric`s.)
//!
//! The parts share the call. The first part uses the lower half of the inbox and the second the
//! upper half, and each has separate counters. The first part has the caller's entry mode, and the
//! second its exit mode. Between them, only the PE itself uses its buffers: all exposures of the
//! first part are detached when it ends.

#[cfg(feature = "compositions")]
pub mod any;
#[cfg(feature = "compositions")]
mod divide;
#[cfg(feature = "compositions")]
pub mod open;
mod part;
#[cfg(feature = "compositions")]
mod reorder;
mod sub;
#[cfg(feature = "compositions")]
pub mod two_level;
#[cfg(feature = "compositions")]
mod volume;

use std::marker::PhantomData;

use consort_fabric::{
    CallSpec, Candidate, Capabilities, Collective, Fabric, MachineModel, Op, Query, Rank, SyncMode,
    SyncModes,
};

use crate::{Algorithm, Parameter, PlanError, Setting};
pub(crate) use part::SequentialParts;
#[doc(hidden)]
pub use {part::PartFabric, sub::Sub};

/// The definition of a composed algorithm.
pub trait Composition: 'static {
    /// The composed algorithm's name, which is also the name of its file.
    const NAME: &'static str;
    /// The composed algorithm's parameters.
    const PARAMETERS: &'static [Parameter];
    /// The first part; its root is PE 0 if it has one.
    type First: Algorithm;
    /// The second part, on the result of the first; its root is PE 0 if it has one.
    type Second: Algorithm;

    /// Returns the candidates of the two parts.
    fn parts(candidate: &Candidate) -> (Candidate, Candidate);
    /// Returns the queries for the two parts that together answer a query for the whole. The blocks
    /// of both must be whole elements, and the result of the first must be the input of the second.
    fn queries(query: &Query) -> (Query, Query);
}

/// An algorithm that is composed of two parts.
#[derive(Debug)]
pub struct Composed<C>(PhantomData<C>);

/// One PE's schedule: the schedules of the parts.
#[derive(Hash)]
pub struct Schedule<A, B> {
    first: A,
    second: B,
    /// The intermediate result of PE `r` begins in the target at `r` times this offset.
    apart: usize,
}

/// Turns the error of the part for `collective` into an error of the whole, because the caller
/// knows only the whole.
pub(crate) fn of_whole(
    algorithm: &'static str,
    collective: Collective,
    error: PlanError,
) -> PlanError {
    let why = match error {
        PlanError::Incapable { algorithm, why } => {
            format!("its {collective} by {algorithm}: {why}")
        }
        other => format!("its {collective}: {other}"),
    };
    PlanError::Incapable { algorithm, why: why.into() }
}

/// Returns the default algorithm of a part.
pub(crate) fn default_candidate(collective: Collective) -> Candidate {
    match collective {
        Collective::AllGather => Candidate::new("bruck").with("radix", 2),
        Collective::AllReduce => Candidate::new("recursive_doubling").with("radix", 2),
        Collective::AllToAll | Collective::ReduceScatter => Candidate::new("pairwise"),
        Collective::Barrier => Candidate::new("dissemination").with("radix", 2),
        _ => Candidate::new("knomial").with("radix", 2),
    }
}

/// Returns the queries for the two parts, with modes that leave a PE its buffers between them.
fn queries(query: &Query, parts: impl Fn(&Query) -> (Query, Query)) -> (Query, Query) {
    let (first, second) = parts(query);
    let SyncModes { entry, exit } = query.sync;
    (
        Query { sync: SyncModes { entry, exit: SyncMode::Mine }, ..first },
        Query { sync: SyncModes { entry: SyncMode::Mine, exit }, ..second },
    )
}

/// Returns the settings of the two parts, and the distance between the places of successive PEs'
/// intermediate results in their targets.
fn halves<A: Algorithm>(
    setting: &Setting,
    parts: impl Fn(&Query) -> (Query, Query),
) -> Result<(Setting, Setting, usize), PlanError> {
    let (of_first, of_second) = queries(&setting.call.query(), parts);
    let bytes = |query: &Query| usize::try_from(query.bytes).unwrap_or(usize::MAX);
    let result = |Query { collective, bytes, .. }: Query| {
        u64::from(collective.target_blocks(setting.call.pes, false)) * bytes
    };
    let is_whole = bytes(&of_first).is_multiple_of(setting.call.element_bytes.max(1));
    if !is_whole || result(of_second) != result(setting.call.query()) {
        return Err(A::incapable("the data is not divided into equal blocks of elements"));
    }
    let middle = setting.first_channel + setting.lines() / 2;
    let part = |query: &Query| {
        let (collective, sync, bytes) = (query.collective, query.sync, bytes(query));
        let call = CallSpec { collective, root: Rank(0), bytes, sync, ..setting.call };
        Setting { call, is_whole: false, ..*setting }
    };
    let capabilities = Capabilities { inbox_channels: middle, ..setting.capabilities };
    let lower = Setting { capabilities, ..part(&of_first) };
    let upper = Setting { first_channel: middle, counter: setting.counter + 2, ..part(&of_second) };
    let gathers = of_second.collective == Collective::AllGather;
    Ok((lower, upper, if gathers { upper.call.bytes } else { 0 }))
}

impl<C: Composition> Algorithm for Composed<C> {
    const NAME: &'static str = C::NAME;
    const PARAMETERS: &'static [Parameter] = C::PARAMETERS;
    type Schedule = Schedule<<C::First as Algorithm>::Schedule, <C::Second as Algorithm>::Schedule>;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Self::Schedule, PlanError> {
        Self::check_names(candidate)?;
        for index in 0..C::PARAMETERS.len() {
            Self::parameter(candidate, index)?;
        }
        let (first, second) = C::parts(candidate);
        let (lower, upper, apart) = halves::<Self>(setting, C::queries)?;
        Ok(Schedule {
            first: C::First::schedule(&lower, &first)
                .map_err(|error| of_whole(C::NAME, lower.call.collective, error))?,
            second: C::Second::schedule(&upper, &second)
                .map_err(|error| of_whole(C::NAME, upper.call.collective, error))?,
            apart,
        })
    }

    fn steps(schedule: &Self::Schedule) -> u64 {
        C::First::steps(&schedule.first).max(C::Second::steps(&schedule.second))
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (first, second) = C::parts(candidate);
        let (of_first, of_second) = queries(query, C::queries);
        C::First::cost_ns(&of_first, &first, model) + C::Second::cost_ns(&of_second, &second, model)
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, schedule: &Self::Schedule) -> Op {
        let Schedule { first, second, apart } = schedule;
        C::First::run(
            &PartFabric::new(f, SequentialParts::<false>::new(f.rank(), 0, *apart)),
            first,
        )
        .await?;
        C::Second::run(
            &PartFabric::new(f, SequentialParts::<true>::new(f.rank(), 0, *apart)),
            second,
        )
        .await
    }
}

#[cfg(test)]
mod tests {
    use consort_fabric::{Nodes, OperatorClass};

    use super::*;
    use crate::{Visitor, visit};

    /// A visitor that returns why a candidate cannot serve a call of 8 PEs.
    struct RefusalText<'c>(&'c Setting, &'c Candidate);

    impl Visitor for RefusalText<'_> {
        type Output = String;

        fn visit<A: Algorithm>(self) -> String {
            A::schedule(self.0, self.1).err().map_or_else(String::new, |error| error.to_string())
        }
    }

    fn refused(collective: Collective, bytes: u64, inbox_channels: u32, candidate: &str) -> String {
        refused_on(Nodes::One, collective, bytes, inbox_channels, candidate)
    }

    fn refused_on(
        nodes: Nodes,
        collective: Collective,
        bytes: u64,
        inbox_channels: u32,
        candidate: &str,
    ) -> String {
        let query = Query {
            collective,
            sync: SyncModes::STRICT,
            pes: 8,
            bytes,
            operator: OperatorClass::Ordered,
            symmetric: false,
        };
        let capabilities = Capabilities {
            exposes: false,
            nodes,
            ..Capabilities::with_memory(inbox_channels, 4096, 8192)
        };
        let candidate: Candidate = candidate.parse().expect("a candidate");
        let setting = Setting::of(&query, capabilities);
        let refused = RefusalText(&setting, &candidate);
        visit(collective, &candidate.algorithm, refused).expect("a name of the registry")
    }

    #[test]
    fn refusal_names_the_candidate_and_the_failing_part() {
        let part_of_all_reduce = |candidate| refused(Collective::AllReduce, 64, 256, candidate);
        assert_eq!(
            part_of_all_reduce("oc_bcast(chunk_bytes=3072,k=65536)"),
            "oc_bcast cannot serve this call: its reduce: knomial_get needs radix from 1 to 65536"
        );
        assert_eq!(
            part_of_all_reduce("oc_bcast(chunk_bytes=8192,k=2)"),
            "oc_bcast cannot serve this call: its broadcast by oc_bcast: \
             two chunks of 8192 B do not fit the message buffer, 8192 B"
        );
        assert_eq!(
            part_of_all_reduce("reduce_scatter_all_gather(direct(block_bytes=16384),direct)"),
            "reduce_scatter_all_gather cannot serve this call: its reduce_scatter by direct: \
             the fabric cannot expose buffers"
        );
        assert!(
            part_of_all_reduce("reduce_broadcast(flat,flat,flat)")
                .ends_with("its parts are an algorithm of reduce, an algorithm of broadcast")
        );
        assert_eq!(part_of_all_reduce("reduce_broadcast(chain(chunk_bytes=1024),flat)"), "");
        assert_eq!(
            refused(Collective::AllGather, 8, 10, "all_broadcast(radix=2)"),
            "all_broadcast cannot serve this call: its broadcast by knomial: the inbox is too small"
        );
    }

    /// The scratch memory of a leader, 4 KiB, holds the data of its node: in a gather, one block of
    /// each of 4 PEs; in an all-to-all, 8 of each; at the root of a scatter, all 8 if they are
    /// reordered. An all-gather or a long all-reduce keeps its data in the target.
    #[test]
    fn two_levels_need_equal_nodes_and_leader_memory() {
        let on = |nodes, collective, bytes| refused_on(nodes, collective, bytes, 256, "two_level");
        let regulars = [
            (Collective::Gather, 960),
            (Collective::Scatter, 480),
            (Collective::AllToAll, 120),
            (Collective::ReduceScatter, 480),
            (Collective::AllGather, 1 << 20),
        ];
        for (collective, bytes) in regulars {
            let in_turn = Some(Nodes::InTurn(2)).filter(|_| !collective.combines());
            for nodes in [Nodes::Blocks(4)].into_iter().chain(in_turn) {
                let is_long =
                    |bytes| on(nodes, collective, bytes).contains("longer than the scratch memory");
                let is_limited = collective != Collective::AllGather;
                let long = [bytes, 16 * bytes].map(is_long);
                assert_eq!(long, [false, is_limited], "{collective} on {nodes:?}");
            }
            for nodes in [Nodes::Blocks(3), Nodes::Blocks(5), Nodes::InTurn(3)] {
                let refused = on(nodes, collective, 8);
                assert!(refused.ends_with("some nodes have more PEs than others"), "{refused}");
            }
        }
        let long = |candidate| {
            refused_on(Nodes::Blocks(4), Collective::AllReduce, 1 << 20, 256, candidate)
        };
        assert_eq!(long("two_level(knomial(radix=2),rabenseifner,knomial(radix=2))"), "");
        let refused = long("two_level");
        assert!(refused.ends_with("it reads contributions after it has written results"));
    }

    /// The blocks of a node are already in the leader's target when they go across.
    #[test]
    fn vendor_part_cannot_gather_in_place() {
        let refused = |collective| {
            let query = Query {
                collective,
                sync: SyncModes::STRICT,
                pes: 8,
                bytes: 64,
                operator: OperatorClass::Commutative,
                symmetric: false,
            };
            let capabilities = Capabilities {
                exposes: false,
                vendor: consort_fabric::Vendor { team: false, leaders: true },
                nodes: consort_fabric::Nodes::Blocks(2),
                ..Capabilities::with_memory(1024, 4096, 8192)
            };
            let candidate = "two_level(knomial(radix=2),vendor,knomial(radix=2))";
            let candidate: Candidate = candidate.parse().expect("a candidate");
            let setting = Setting::of(&query, capabilities);
            visit(collective, &candidate.algorithm, RefusalText(&setting, &candidate))
                .expect("a name")
        };
        assert_eq!(
            refused(Collective::AllGather),
            "two_level cannot serve this call: its all_gather by vendor: the fabric provides no \
             collectives for these PEs"
        );
        assert_eq!(refused(Collective::AllToAll), "");
    }
}
