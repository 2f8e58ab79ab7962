//! Open compositions: two parts, each by any algorithm of its collective.
//!
//! The candidate names the parts' algorithms, as in `reduce_broadcast(knomial(radix=4),flat)`, or
//! none to select the defaults (Nishtala, Zheng, Hargrove and Yelick 2011, section 3.5). The tuner
//! varies each part, and then tries the combination of the best parts.

use std::{hash::Hash, marker::PhantomData};

use consort_fabric::{
    Candidate, Capabilities, Collective, Fabric, MachineModel, Op, Place, Query, Ranks, Vendor,
};

use super::{
    any::{PartSchedule, part_of},
    halves, of_whole, queries,
    sub::{Buffer, Buffers, Sub},
};
use crate::{Algorithm, Parameter, PlanError, Setting, algorithm::AnySchedule};

/// The definition of an open composition.
pub trait OpenComposition: 'static {
    /// The composed algorithm's name, which is also the name of its file.
    const NAME: &'static str;
    /// The first part; its root is PE 0 if it has one.
    type First: AnySchedule;
    /// The second part, on the result of the first; its root is PE 0 if it has one.
    type Second: AnySchedule;

    /// Returns the queries for the two parts that together answer a query for the whole. The blocks
    /// of both must be whole elements, and the result of the first must be the input of the second.
    fn queries(query: &Query) -> (Query, Query);
}

/// An algorithm that is composed of any two algorithms.
#[derive(Debug)]
pub struct Open<C>(PhantomData<C>);

/// One PE's schedule: its shares of the parts.
#[derive(Hash)]
pub struct Schedule<A, B> {
    first: PartSchedule<A>,
    second: PartSchedule<B>,
}

impl<C: OpenComposition> Algorithm for Open<C> {
    const NAME: &'static str = C::NAME;
    const PARAMETERS: &'static [Parameter] = &[];
    const PARTS: [Option<Collective>; 3] = [C::First::COLLECTIVE, C::Second::COLLECTIVE, None];
    type Schedule = Schedule<C::First, C::Second>;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Self::Schedule, PlanError> {
        Self::check_names(candidate)?;
        let (lower, upper, apart) = halves::<Self>(setting, C::queries)?;
        // A vendor library serves whole calls only.
        let alone = |half: Setting| Setting {
            capabilities: Capabilities { vendor: Vendor::NONE, ..half.capabilities },
            ..half
        };
        let all = Ranks { first: 0, stride: 1, count: setting.call.pes };
        let share = |source, target| {
            let buffers = Buffers { source, target };
            Sub { ranks: all, own: setting.rank.0, buffers }
        };
        let middle = Buffer { place: Place::Target, first: 0, apart };
        let of_part = |error, half: &Setting| of_whole(C::NAME, half.call.collective, error);
        let first = C::First::new(&alone(lower), &part_of(C::NAME, Self::PARTS, candidate, 0)?)
            .map_err(|error| of_part(error, &lower))?;
        let second = C::Second::new(&alone(upper), &part_of(C::NAME, Self::PARTS, candidate, 1)?)
            .map_err(|error| of_part(error, &upper))?;
        Ok(Schedule {
            first: PartSchedule {
                sub: share(Buffer::new(Place::Source, 0), middle),
                schedule: first,
            },
            second: PartSchedule {
                sub: share(middle, Buffer::new(Place::Target, 0)),
                schedule: second,
            },
        })
    }

    fn steps(schedule: &Self::Schedule) -> u64 {
        schedule.first.schedule.steps().max(schedule.second.schedule.steps())
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let (Ok(first), Ok(second)) = (
            part_of(C::NAME, Self::PARTS, candidate, 0),
            part_of(C::NAME, Self::PARTS, candidate, 1),
        ) else {
            return f64::INFINITY;
        };
        let (of_first, of_second) = queries(query, C::queries);
        C::First::cost_ns(&of_first, &first, model) + C::Second::cost_ns(&of_second, &second, model)
    }

    async fn run<F: Fabric>(f: &F, schedule: &Self::Schedule) -> Op {
        schedule.first.run(f).await?;
        schedule.second.run(f).await
    }
}
