//! A figure of a paper, declared next to the code that computes it.

use std::fmt;

use serde::{Serialize, Serializer};

use consort_bench::units::number;

/// A figure of a paper: a quantity, and its value or limit on the paper's machines.
#[derive(Debug)]
pub struct Figure {
    /// The claim and the name of the declaration, as in `T2.LINE_K7`. Descriptions of machines
    /// refer to figures by it.
    pub id: &'static str,
    /// The number that distinguishes it in its array; 0 outside of arrays.
    pub at: u32,
    /// The section, table or figure of the claim's paper.
    pub place: &'static str,
    /// The quantity, without the number of PEs.
    pub quantity: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The paper's machines, with the value or limit of each.
    pub papers: &'static [(&'static str, Paper)],
}

/// The figures of a module for one claim, in the order of their declarations.
pub type Figures = &'static [&'static [Figure]];

impl Figure {
    /// Returns the paper's value or limit on a machine, if it gives one.
    pub fn paper(&self, machine: &str) -> Option<Paper> {
        self.papers.iter().find(|(of, _)| *of == machine).map(|&(_, paper)| paper)
    }
}

/// Returns the id of a declaration for the id of one of its figures: without the number that
/// distinguishes it in its array. Figures of an array with the same value or limit on a machine are
/// one statement of the paper about several sizes.
pub(crate) fn statement(id: &str) -> &str {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    id.rsplit_once('.').filter(|(_, at)| is_number(at)).map_or(id, |(declaration, _)| declaration)
}

/// The units of ratios.
pub(crate) const RATIOS: [&str; 2] = ["ratio", "x"];
/// A method is faster than another if their ratio differs from 1 by more than 2 %. The same holds
/// for "slower", "more" and "less".
const FASTER: f64 = 0.02;

/// The value or limit that a paper gives for a quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paper {
    /// It has about this value.
    Value(f64),
    /// It has this value, up to a small error: it is a count, or the paper calls it equal or states
    /// an error.
    Equal(f64),
    /// It is at most this.
    AtMost(f64),
    /// It is at least this.
    AtLeast(f64),
}

impl Paper {
    /// Returns the value or limit.
    pub const fn number(self) -> f64 {
        match self {
            Self::Value(number)
            | Self::Equal(number)
            | Self::AtMost(number)
            | Self::AtLeast(number) => number,
        }
    }

    /// Returns whether a value stays within the limit, or `None` if the paper gives a value.
    pub(crate) fn is_kept(self, value: f64, unit: &str) -> Option<bool> {
        match self {
            Self::Value(_) | Self::Equal(_) => None,
            Self::AtMost(1.0) if RATIOS.contains(&unit) => Some(value < 1.0 - FASTER),
            Self::AtLeast(1.0) if RATIOS.contains(&unit) => Some(value > 1.0 + FASTER),
            Self::AtMost(most) => Some(value <= most),
            Self::AtLeast(least) => Some(value >= least),
        }
    }
}

impl fmt::Display for Paper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = match self {
            Self::Value(_) | Self::Equal(_) => "",
            Self::AtMost(_) => "< ",
            Self::AtLeast(_) => "> ",
        };
        write!(f, "{sign}{}", number(self.number()))
    }
}

impl Serialize for Paper {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.number())
    }
}

/// Declares figures of a claim as statics, and a list of all of them.
///
/// After the list's name come the claim, the place in its paper, and groups of figures by unit. A
/// figure is `NAME("quantity", MACHINE == 1.5)`, with the value, an exact value (`~`) or a limit
/// (`<=`, `>=`) for each machine. An array of figures that differ in a number is
/// `NAME["before", "after"; 8 | 64 => (MACHINE == 1.5), 512 => ()]`.
macro_rules! figures {
    (@paper == $value:expr) => { $crate::figures::figure::Paper::Value($value) };
    (@paper ~ $value:expr) => { $crate::figures::figure::Paper::Equal($value) };
    (@paper <= $value:expr) => { $crate::figures::figure::Paper::AtMost($value) };
    (@paper >= $value:expr) => { $crate::figures::figure::Paper::AtLeast($value) };
    (@figure $id:expr, $at:expr, $place:literal, $unit:literal, $quantity:expr,
        ($($machine:ident $limit:tt $value:expr),*)) => {
        $crate::figures::figure::Figure {
            id: $id,
            at: $at,
            place: $place,
            quantity: $quantity,
            unit: $unit,
            papers: &[$(($machine, figures!(@paper $limit $value))),*],
        }
    };
    (@declare $claim:literal $place:literal $unit:literal $name:ident
        ($quantity:literal $(, $machine:ident $limit:tt $value:expr)*)) => {
        pub(super) static $name: $crate::figures::figure::Figure = figures!(
            @figure concat!($claim, ".", stringify!($name)), 0, $place, $unit, $quantity,
            ($($machine $limit $value),*));
    };
    (@declare $claim:literal $place:literal $unit:literal $name:ident
        [$before:literal, $after:literal; $($($at:literal)|+ => $papers:tt),* $(,)?]) => {
        pub(super) static $name: [$crate::figures::figure::Figure; [$($($at),+),*].len()] =
            [$($(figures!(
                @figure concat!($claim, ".", stringify!($name), ".", $at), $at, $place, $unit,
                concat!($before, $at, $after), $papers)),+),*];
    };
    (@list $name:ident ($($figure:tt)*)) => { std::slice::from_ref(&$name) };
    (@list $name:ident [$($figures:tt)*]) => { &$name };
    ($visible:vis $list:ident of $claim:literal, $place:literal:
        $($unit:literal: $($name:ident $body:tt)*)*) => {
        $($(figures!(@declare $claim $place $unit $name $body);)*)*
        /// The figures that this module declares for the claim.
        $visible const $list: $crate::figures::figure::Figures =
            &[$($(figures!(@list $name $body),)*)*];
    };
}
