//! The trait of an algorithm, its parameters, and the errors of a plan.

use std::{
    borrow::Cow,
    fmt::{self, Debug},
    future::Future,
    pin::Pin,
};

use consort_fabric::{Candidate, Collective, Fabric, MachineModel, Op, Query};

use crate::Setting;

/// A parameter of an algorithm and the values worth trying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name; a unit is part of it.
    pub name: &'static str,
    /// The values that the tuner tries.
    pub values: &'static [u64],
    /// The smallest and the largest value that make sense.
    pub range: (u64, u64),
}

/// An algorithm's name and parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Description {
    /// The name of its file.
    pub name: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    /// Whether results may replace contributions.
    pub in_place: bool,
    /// The collectives of its parts, if their algorithms are chosen.
    pub parts: [Option<Collective>; 3],
    /// See [`Algorithm::REVISION`].
    pub revision: u32,
}

impl Description {
    /// The value of a parameter.
    ///
    /// # Errors
    /// When it is missing or out of range.
    pub fn parameter(&self, candidate: &Candidate, index: usize) -> Result<u64, PlanError> {
        let Parameter { name, range: (least, most), .. } = self.parameters[index];
        candidate
            .parameter(name)
            .filter(|value| (least..=most).contains(value))
            .ok_or(PlanError::BadValue { algorithm: self.name, name, least, most })
    }

    /// Whether all parameters are known ones, with values in their ranges.
    ///
    /// # Errors
    /// When one is not, or is missing.
    pub fn check(&self, candidate: &Candidate) -> Result<(), PlanError> {
        self.check_names(candidate)?;
        (0..self.parameters.len()).try_for_each(|index| self.parameter(candidate, index).map(drop))
    }

    /// Whether all parameters are known ones.
    ///
    /// # Errors
    /// When one is not.
    pub fn check_names(&self, candidate: &Candidate) -> Result<(), PlanError> {
        if let Some(part) = candidate.parts.first()
            && self.parts.iter().all(Option::is_none)
        {
            return Err(self.unknown(part.to_string()));
        }
        let known = |name: &String| self.parameters.iter().any(|known| known.name == name);
        match candidate.parameters.keys().find(|name| !known(name)) {
            None => Ok(()),
            Some(name) => Err(self.unknown(name.clone())),
        }
    }

    fn unknown(&self, name: String) -> PlanError {
        let names: Vec<_> = self.parameters.iter().map(|known| known.name).collect();
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        PlanError::UnknownParameter { algorithm: self.name, name, known }
    }
}

/// Which way the data of an algorithm moves: this decides which waits its messages imply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the root: whoever has received knows that the root has entered.
    Down,
    /// To the root: when the root is done it knows that all have entered.
    Up,
    /// Neither.
    Neither,
}

/// Why a candidate is no plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// No algorithm has that name.
    UnknownAlgorithm {
        /// The operation.
        collective: Collective,
        /// The name that was asked for.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The algorithm has no such parameter.
    UnknownParameter {
        /// The algorithm.
        algorithm: &'static str,
        /// The name that was given.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// A parameter's value is missing or out of range.
    BadValue {
        /// The algorithm.
        algorithm: &'static str,
        /// The parameter.
        name: &'static str,
        /// The smallest that makes sense.
        least: u64,
        /// The largest.
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
                write!(f, "{collective} has no algorithm `{name}`: there are {known}")
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

/// An algorithm for a collective: a name, parameters, a schedule, a cost, and the protocol itself.
pub trait Algorithm: 'static {
    /// The name of its file.
    const NAME: &'static str;
    /// Whether data moves from the root, to it, or neither; see [`Direction`].
    const DIRECTION: Direction = Direction::Neither;
    /// Whether the root touches data of its own in no order with the messages: before the first of
    /// those that move up to it, or after the last of those that move down.
    const ROOT_ACTS_APART: bool = false;
    /// Whether it reads no part of a contribution after it has written that part of the result, so
    /// that the result may replace the contribution; see [`Setting::contribution`].
    const IN_PLACE: bool = false;
    /// Its parameters.
    const PARAMETERS: &'static [Parameter];
    /// Raised when what it sends changes, so that wisdom about the old messages is not used. A test
    /// of the conformance suite compares the messages with those of each revision.
    const REVISION: u32 = 1;
    /// The collectives of its parts, if their algorithms are chosen.
    const PARTS: [Option<Collective>; 3] = [None; 3];
    /// All of these, for code that is the same for all algorithms.
    const DESCRIPTION: Description = Description {
        name: Self::NAME,
        parameters: Self::PARAMETERS,
        in_place: Self::IN_PLACE,
        parts: Self::PARTS,
        revision: Self::REVISION,
    };
    /// The peers and channels, computed once for many calls. Its `Debug` shows all of it: schedules
    /// of one type that are shown alike are one.
    type Schedule: Debug + Send + std::marker::Sync + 'static;

    /// The schedule of one PE. Succeeds on all PEs of a team or on none.
    ///
    /// # Errors
    /// When the algorithm cannot serve the setting.
    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Self::Schedule, PlanError>;

    /// Steps of a call, the same on all PEs: one more than the largest step it uses.
    fn steps(_: &Self::Schedule) -> u64 {
        1
    }

    /// Whether, by this schedule, no PE leaves before all have entered, so that the plan needs no
    /// barrier for it. In calls on values and slices that is taken for granted of a collective
    /// whose every result depends on all contributions.
    fn synchronizes(_: &Self::Schedule) -> bool {
        false
    }

    /// The model's estimate of a call, in nanoseconds: of `Loose` calls in a row, of others alone.
    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64;

    /// The protocol. It begins when it is first polled, after the entry barrier: an operation of a
    /// fabric may begin as soon as it is called. It awaits operations of the fabric alone: a call
    /// in which all PEs wait, for messages that none of them sends, fails the job.
    fn run<F: Fabric>(f: &F, schedule: &Self::Schedule) -> impl Future<Output = Op>;

    /// The error for a call that it cannot serve.
    #[must_use]
    fn incapable(why: impl Into<Cow<'static, str>>) -> PlanError {
        PlanError::Incapable { algorithm: Self::NAME, why: why.into() }
    }

    /// The error on a fabric without counters; none where there are some.
    ///
    /// # Errors
    /// As it says.
    fn need_counters(setting: &Setting) -> Result<(), PlanError> {
        let why = "the fabric has no counters, to which several PEs add";
        if setting.capabilities.counts { Ok(()) } else { Err(Self::incapable(why)) }
    }

    /// The value of a parameter.
    ///
    /// # Errors
    /// When it is missing or out of range.
    fn parameter(candidate: &Candidate, index: usize) -> Result<u64, PlanError> {
        Self::DESCRIPTION.parameter(candidate, index)
    }

    /// Whether all parameters are known ones, with values in their ranges.
    ///
    /// # Errors
    /// When one is not, or is missing.
    fn check(candidate: &Candidate) -> Result<(), PlanError> {
        Self::DESCRIPTION.check(candidate)
    }

    /// Whether all parameters are known ones.
    ///
    /// # Errors
    /// When one is not.
    fn check_names(candidate: &Candidate) -> Result<(), PlanError> {
        Self::DESCRIPTION.check_names(candidate)
    }
}

/// The schedule of one PE, if the algorithm can serve the call.
///
/// # Errors
/// As [`Algorithm::schedule`], and when the call is in place and the algorithm does not work so.
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
pub trait AnySchedule: Debug + Send + Sync + Sized + 'static {
    /// The schedule of one PE.
    ///
    /// # Errors
    /// As [`Algorithm::schedule`], and when there is no such algorithm.
    fn new(setting: &Setting, candidate: &Candidate) -> Result<Self, PlanError>;
    /// See [`Algorithm::steps`].
    fn steps(&self) -> u64;
    /// See [`Algorithm::cost_ns`].
    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64;
    /// See [`Algorithm::run`].
    fn run<'c, F: Fabric>(&'c self, f: &'c F) -> Pin<Box<dyn Future<Output = Op> + 'c>>;
}

/// Something to do with an algorithm that is known by name only.
pub trait Visitor {
    /// The result of a visit.
    type Output;
    /// Does it.
    fn visit<A: Algorithm>(self) -> Self::Output;
}

/// Makes a collective's registry of its algorithms' files, and of algorithms that it shares with
/// other collectives. Where `Any` is asked for, it is one of these algorithms, but not of the files
/// after it, which are made of such.
macro_rules! registry {
    (
        $($file:ident: $($algorithm:ident)+),*;
        $(use $shared:ident;)*
        Any;
        $($of_any:ident: $of:ident),* $(,)?
    ) => {
        $crate::algorithm::registry! {
            $($file: $($algorithm)+,)* $($of_any: $of),*;
            $(use $shared;)*
        }

        /// A schedule of one of the algorithms.
        #[derive(Debug)]
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

        impl $crate::algorithm::AnySchedule for Any {
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
    ($($file:ident: $($algorithm:ident)+),* $(,)? $(; $(use $shared:ident;)*)?) => {
        $(
            #[allow(missing_docs, reason = "the head of the file says what the algorithm is")]
            pub mod $file;
            pub use $file::{$($algorithm),+};
        )*

        /// The algorithms of this collective.
        pub const NAMES: &[&str] = &[
            $($(<$algorithm as $crate::Algorithm>::NAME,)+)*
            $($(<$shared as $crate::Algorithm>::NAME,)*)?
        ];

        /// Does something with the algorithm called `name`, if there is one.
        pub fn visit<V: $crate::Visitor>(name: &str, visitor: V) -> Option<V::Output> {
            match name {
                $($(<$algorithm as $crate::Algorithm>::NAME => {
                    Some(visitor.visit::<$algorithm>())
                })+)*
                $($(<$shared as $crate::Algorithm>::NAME => Some(visitor.visit::<$shared>()),)*)?
                _ => None,
            }
        }
    };
}
pub(crate) use registry;
