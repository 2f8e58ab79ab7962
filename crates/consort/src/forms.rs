//! The forms of data that a call takes. [`Call`] lists them, and its methods are the collectives.
//!
//! Only generic programs need to import from here.

pub use crate::{
    collectives::{
        call::Call,
        counts::{BothSides, Counts, OneSide},
        form::{
            Combines, Form, KnowsLength, KnowsSource, KnowsTarget, Returns, Separate, TakesLength,
            WithCounts, WithLen,
        },
        slices::{InPlace, InSymmetric, Slices},
        values::{Uneven, Values},
    },
    nonblocking::{
        overlap::{Borrowed, BorrowedInPlace},
        planned::PlannedData,
        start::{Start, StartInto, StartSymmetric},
    },
};
