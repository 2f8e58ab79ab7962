//! The `Algorithm` trait, algorithm parameters, and the errors of making a plan.

use std::{borrow::Cow, fmt, future::Future, hash::Hash};

use consort_fabric::{Candidate, Collective, Fabric, MachineModel, Op, Query};

use crate::Setting;

/// A parameter of an algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, including the unit.
    pub name: &'static str,
    /// The values that the tuner tries.
    pub values: &'static [u64],
    /// The smallest and the largest valid value.
    pub range: (u64, u64),
}

/// An algorithm's name and parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name, which is also the name of its file.
    pub name: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether it also works in place, where results replace contributions.
    pub in_place: bool,
    /// The collectives of its parts, if the algorithms of the parts can be chosen.
    pub parts: [Option<Collective>; 3],
    /// See [`Algorithm::REVISION`].
    pub revision: u32,
}

impl Description {
    /// Returns the value of a parameter.
    ///
    /// # Errors
    /// If the parameter is missing or out of range.
    pub fn parameter(&self, candidate: &Candidate, index: usize) -> Result<u64, PlanError> {
        let Parameter { name, range: (least, most), .. } = self.parameters[index];
        candidate
            .parameter(name)
            .filter(|value| (least..=most).contains(value))
            .ok_or(PlanError::BadValue { algorithm: self.name, name, least, most })
    }

    /// Checks that all parameters are known and that their values are in range.
    ///
    /// # Errors
    /// If a parameter is unknown, missing or out of range.
    pub fn check(&self, candidate: &Candidate) -> Result<(), PlanError> {
        self.check_names(candidate)?;
        (0..self.parameters.len()).try_for_each(|index| self.parameter(candidate, index).map(drop))
    }

    /// Checks that all parameters are known.
    ///
    /// # Errors
    /// If a parameter is unknown.
    pub fn check_names(&self, candidate: &Candidate) -> Result<(), PlanError> {
        if let Some(part) = candidate.parts.first()
            && self.parts.iter().all(Option::is_none)
        {
            return Err(self.unknown(part.to_string()));
        }
        let known = |name: &String| self.parameters.iter().any(|known| known.name == name);
        match candidate.parameters().iter().find(|(name, _)| !known(name)) {
            None => Ok(()),
            Some((name, _)) => Err(self.unknown(name.clone())),
        }
    }

    fn unknown(&self, name: String) -> PlanError {
        let names: Vec<_> = self.parameters.iter().map(|known| known.name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        PlanError::UnknownParameter { algorithm: self.name, name, known }
    }
}

/// The direction in which an algorithm moves data. It decides which waits the messages imply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the root: a PE that has received data knows that the root has entered.
    Down,
    /// To the root: when the root is done, it knows that all PEs have entered.
    Up,
    /// Neither.
    Neither,
}

/// The reason why a candidate has no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// No algorithm has that name.
    UnknownAlgorithm {
        /// The operation.
        collective: Collective,
        /// The requested name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The algorithm has no such parameter.
    UnknownParameter {
        /// The algorithm.
        algorithm: &'static str,
        /// The given name.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// A parameter's value is missing or out of range.
    BadValue {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        name: &'static str,
        /// The smallest valid value.
        least: u64,
        /// The largest valid value.
        most: u64,
    },
    /// The algorithm cannot serve this call.
    Incapable {
        /// The algorithm.
        algorithm: &'static str,
        /// The requirement that is not met.
        why: Cow<'static, str>,
    },
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownAlgorithm { collective, name, known } => {
                write!(f, "{collective} has no algorithm `{name}`: use {known}")
            }
            Self::UnknownParameter { algorithm, name, known } => {
                write!(f, "{algorithm} has no parameter `{name}`: it has {known}")
            }
            Self::BadValue { algorithm, name, least, most } => {
                write!(f, "{algorithm} needs {name} from {least} to {most}")
            }
            Self::Incapable { algorithm, why } => {
                write!(f, "{algorithm} cannot serve this call: {why}")
            }
        }
    }
}

impl std::error::Error for PlanError {}

/// An algorithm for a collective: name, parameters, schedule, cost and protocol.
pub trait Algorithm: 'static {
    /// The name, which is also the name of its file.
    const NAME: &'static str;
    /// The direction in which data moves.
    const DIRECTION: Direction = Direction::Neither;
    /// Whether messages do not order the root's accesses to its own data. The root may then access
    /// the data before the first message that moves up to it, or after the last one that moves
    /// down.
    const ROOT_ACCESS_IS_UNORDERED: bool = false;
    /// Whether it never reads a part of a contribution after it has written that part of the
    /// result. If so, the result may replace the contribution; see [`Setting::contribution`].
    const IN_PLACE: bool = false;
    /// Its parameters.
    const PARAMETERS: &'static [Parameter];
    /// Raised when the messages of the algorithm change, so that wisdom about the old ones is not
    /// used. The conformance suite compares the messages with those recorded for each revision.
    const REVISION: u32 = 1;
    /// The collectives of its parts, if the algorithms of the parts can be chosen.
    const PARTS: [Option<Collective>; 3] = [None; 3];
    /// All of the above, for code that handles every algorithm alike.
    const DESCRIPTION: Description = Description {
        name: Self::NAME,
        parameters: Self::PARAMETERS,
        in_place: Self::IN_PLACE,
        parts: Self::PARTS,
        revision: Self::REVISION,
    };
    /// The peers and channels, computed once for many calls. `Hash` must include all of it: two
    /// schedules of one type with the same hash count as equal.
    type Schedule: Hash + Send + std::marker::Sync + 'static;

    /// Returns the schedule of one PE. Succeeds on all PEs of a team or on none.
    ///
    /// # Errors
    /// If the algorithm cannot serve the setting.
    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Self::Schedule, PlanError>;

    /// Returns the number of steps of a call, the same on all PEs: the largest step plus one.
    fn steps(_: &Self::Schedule) -> u64 {
        1
    }

    /// Returns whether this schedule lets no PE leave before all have entered, so that the plan
    /// needs no barrier for that. Calls on values and slices assume it of every collective in which
    /// each result depends on all contributions.
    fn synchronizes(_: &Self::Schedule) -> bool {
        false
    }

    /// Returns whether the target of a PE may also be its source, if its peers read a copy that is
    /// made when the PE exposes the source: if the algorithm does not send from its source, and
    /// never reads a part of it after it has written that part of the target.
    fn may_replace_source(_: &Setting) -> bool {
        false
    }

    /// Returns the model's estimate of a call, in nanoseconds. A `Loose` call is one of many in a
    /// row; any other call is a single one.
    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64;

    /// Runs the protocol. It begins at the first poll, after the entry barrier, because an
    /// operation of a fabric may begin as soon as it is called. The protocol may await operations
    /// of the fabric only: if all PEs of a call wait for messages that none of them sends, the job
    /// fails.
    fn run<F: Fabric>(f: &F, schedule: &Self::Schedule) -> impl Future<Output = Op>;

    /// Returns the error for a call that the algorithm cannot serve.
    #[must_use]
    fn incapable(why: impl Into<Cow<'static, str>>) -> PlanError {
        PlanError::Incapable { algorithm: Self::NAME, why: why.into() }
    }

    /// Checks that the fabric can expose buffers.
    ///
    /// # Errors
    /// If the fabric cannot.
    fn need_exposures(setting: &Setting) -> Result<(), PlanError> {
        let why = "the fabric cannot expose buffers";
        if setting.capabilities.exposes { Ok(()) } else { Err(Self::incapable(why)) }
    }

    /// Checks that the fabric has counters.
    ///
    /// # Errors
    /// If the fabric has no counters.
    fn need_counters(setting: &Setting) -> Result<(), PlanError> {
        let why = "the fabric has no counters that several PEs add to";
        if setting.capabilities.counts { Ok(()) } else { Err(Self::incapable(why)) }
    }

    /// Returns the value of a parameter.
    ///
    /// # Errors
    /// If the parameter is missing or out of range.
    fn parameter(candidate: &Candidate, index: usize) -> Result<u64, PlanError> {
        Self::DESCRIPTION.parameter(candidate, index)
    }

    /// Checks that all parameters are known and that their values are in range.
    ///
    /// # Errors
    /// If a parameter is unknown, missing or out of range.
    fn check(candidate: &Candidate) -> Result<(), PlanError> {
        Self::DESCRIPTION.check(candidate)
    }

    /// Checks that all parameters are known.
    ///
    /// # Errors
    /// If a parameter is unknown.
    fn check_names(candidate: &Candidate) -> Result<(), PlanError> {
        Self::DESCRIPTION.check_names(candidate)
    }
}

/// Returns the schedule of one PE.
///
/// # Errors
/// As [`Algorithm::schedule`]; also if the call is in place and the algorithm cannot work in place.
#[inline(never)] // Several visitors of each algorithm call it, none of them often.
pub(crate) fn schedule<A: Algorithm>(
    setting: &Setting,
    candidate: &Candidate,
) -> Result<A::Schedule, PlanError> {
    if setting.call.in_place && !A::IN_PLACE {
        return Err(A::incapable("it reads contributions after it has written results"));
    }
    A::schedule(setting, candidate)
}

/// A schedule of any algorithm of a collective.
#[cfg(feature = "compositions")]
pub trait AnySchedule: Hash + Send + Sync + Sized + 'static {
    /// The collective; `None` for a part that does not exist.
    const COLLECTIVE: Option<Collective>;

    /// Returns the schedule of one PE.
    ///
    /// # Errors
    /// As [`Algorithm::schedule`], and if no such algorithm exists.
    fn new(setting: &Setting, candidate: &Candidate) -> Result<Self, PlanError>;
    /// See [`Algorithm::steps`].
    fn steps(&self) -> u64;
    /// See [`Algorithm::cost_ns`].
    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64;
    /// See [`Algorithm::run`].
    fn run<'c, F: Fabric>(&'c self, f: &'c F) -> std::pin::Pin<Box<dyn Future<Output = Op> + 'c>>;
}

/// An operation on an algorithm that is known only by its name.
pub trait Visitor {
    /// The result of the visit.
    type Output;
    /// Performs the operation on algorithm `A`.
    fn visit<A: Algorithm>(self) -> Self::Output;
}

/// Makes the registry of a collective: the algorithms in its files, and those that it shares with
/// other collectives. `Any` is a schedule of one of them. The files listed after `Any` are not part
/// of it, because their algorithms are composed of `Any`; they need the feature `compositions`.
macro_rules! registry {
    (
        $($file:ident: $($algorithm:ident)+),*;
        $(use $shared:ident;)*
        Any of $collective:ident;
        $($of_any:ident: $of:ident),* $(,)?
    ) => {
        $crate::algorithm::registry! {
            $($file: $($algorithm)+),*;
            $(use $shared;)*
            compositions $($of_any: $of),*
        }

        /// A schedule of one of the algorithms.
        #[cfg(feature = "compositions")]
        #[derive(Hash)]
        pub enum Any {
            $($(
                #[doc = concat!("Of [`", stringify!($algorithm), "`].")]
                $algorithm(Box<<$algorithm as $crate::Algorithm>::Schedule>),
            )+)*
            $(
                #[doc = concat!("Of [`", stringify!($shared), "`].")]
                $shared(Box<<$shared as $crate::Algorithm>::Schedule>),
            )*
        }

        #[cfg(feature = "compositions")]
        impl $crate::algorithm::AnySchedule for Any {
            const COLLECTIVE: Option<consort_fabric::Collective> =
                Some(consort_fabric::Collective::$collective);

            fn new(
                setting: &$crate::Setting,
                candidate: &consort_fabric::Candidate,
            ) -> Result<Self, $crate::PlanError> {
                match candidate.algorithm.as_str() {
                    $($(<$algorithm as $crate::Algorithm>::NAME => {
                        let schedule = $crate::algorithm::schedule::<$algorithm>;
                        schedule(setting, candidate).map(Box::new).map(Self::$algorithm)
                    })+)*
                    $(<$shared as $crate::Algorithm>::NAME => {
                        let schedule = $crate::algorithm::schedule::<$shared>;
                        schedule(setting, candidate).map(Box::new).map(Self::$shared)
                    })*
                    name => {
                        let own: Vec<&str> =
                            vec![$($(<$algorithm as $crate::Algorithm>::NAME),+),*];
                        Err($crate::PlanError::UnknownAlgorithm {
                            collective: setting.call.collective,
                            name: name.to_owned(),
                            known: own.join(", "),
                        })
                    }
                }
            }

            fn steps(&self) -> u64 {
                match self {
                    $($(Self::$algorithm(schedule) => {
                        <$algorithm as $crate::Algorithm>::steps(schedule)
                    })+)*
                    $(Self::$shared(schedule) => {
                        <$shared as $crate::Algorithm>::steps(schedule)
                    })*
                }
            }

            fn cost_ns(
                query: &consort_fabric::Query,
                candidate: &consort_fabric::Candidate,
                model: &consort_fabric::MachineModel,
            ) -> f64 {
                match candidate.algorithm.as_str() {
                    $($(<$algorithm as $crate::Algorithm>::NAME => {
                        <$algorithm as $crate::Algorithm>::cost_ns(query, candidate, model)
                    })+)*
                    $(<$shared as $crate::Algorithm>::NAME => {
                        <$shared as $crate::Algorithm>::cost_ns(query, candidate, model)
                    })*
                    _ => f64::INFINITY,
                }
            }

            fn run<'c, F: consort_fabric::Fabric>(
                &'c self,
                f: &'c F,
            ) -> std::pin::Pin<Box<dyn Future<Output = consort_fabric::Op> + 'c>> {
                match self {
                    $($(Self::$algorithm(schedule) => {
                        Box::pin(<$algorithm as $crate::Algorithm>::run(f, schedule))
                    })+)*
                    $(Self::$shared(schedule) => {
                        Box::pin(<$shared as $crate::Algorithm>::run(f, schedule))
                    })*
                }
            }
        }
    };
    (
        $($file:ident: $($algorithm:ident)+),* $(,)?
        $(; $(use $shared:ident;)* $(compositions $($of_any:ident: $of:ident),*)?)?
    ) => {
        $(
            #[allow(missing_docs, reason = "the head of the file describes the algorithm")]
            pub mod $file;
            pub use $file::{$($algorithm),+};
        )*
        $($($(
            #[cfg(feature = "compositions")]
            #[allow(missing_docs, reason = "the head of the file describes the algorithm")]
            pub mod $of_any;
            #[cfg(feature = "compositions")]
            pub use $of_any::$of;
        )*)?)?

        /// The algorithms of this collective.
        pub const NAMES: &[&str] = &[
            $($(<$algorithm as $crate::Algorithm>::NAME,)+)*
            $(
                $(<$shared as $crate::Algorithm>::NAME,)*
                $($(#[cfg(feature = "compositions")] <$of as $crate::Algorithm>::NAME,)*)?
            )?
        ];

        /// Visits the algorithm called `name`, if it exists.
        pub fn visit<V: $crate::Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $($(<$algorithm as $crate::Algorithm>::NAME => {
                    Some(visitor.visit::<$algorithm>())
                })+)*
                $(
                    $(<$shared as $crate::Algorithm>::NAME => Some(visitor.visit::<$shared>()),)*
                    $($(
                        #[cfg(feature = "compositions")]
                        <$of as $crate::Algorithm>::NAME => Some(visitor.visit::<$of>()),
                    )*)?
                )?
                _ => None,
            }
        }
    };
}
pub(crate) use registry;
