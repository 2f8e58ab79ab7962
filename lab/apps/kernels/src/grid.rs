//! The shape of a grid of PEs.

use std::{fmt, str::FromStr};

/// The rows and columns of a grid of PEs. The grid is filled row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The number of rows.
    pub rows: usize,
    /// The number of columns.
    pub columns: usize,
}

/// The error of a text that is not a grid shape.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid grid `{0}`: expected rows and columns, as in 2x3")]
pub struct NoShape(String);

/// The error of a grid whose number of places is not the number of PEs.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "a grid of {shape} has {} places, but there are {pes} PEs: try {}",
    shape.rows.saturating_mul(shape.columns),
    Shape::squarest(*pes)
)]
pub struct GridMismatch {
    shape: Shape,
    pes: usize,
}

impl Shape {
    /// Returns the grid of `pes` PEs that is nearest to a square. It is not higher than it is wide.
    #[must_use]
    pub fn squarest(pes: usize) -> Self {
        let divides = |rows: &usize| pes.is_multiple_of(*rows);
        let rows = (1..=pes.isqrt()).rev().find(divides).unwrap_or(1);
        Self { rows, columns: pes / rows }
    }

    /// Returns the given shape, or else the squarest one, for `pes` PEs.
    ///
    /// # Errors
    /// [`GridMismatch`] when the given shape has a different number of places.
    pub fn of(given: Option<Self>, pes: usize) -> Result<Self, GridMismatch> {
        let shape = given.unwrap_or_else(|| Self::squarest(pes));
        match shape.rows.checked_mul(shape.columns) {
            Some(places) if places == pes => Ok(shape),
            _ => Err(GridMismatch { shape, pes }),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.rows, self.columns)
    }
}

impl FromStr for Shape {
    type Err = NoShape;

    fn from_str(text: &str) -> Result<Self, NoShape> {
        let parsed = text.split_once('x').and_then(|(rows, columns)| {
            let shape = Self { rows: rows.parse().ok()?, columns: columns.parse().ok()? };
            (shape.rows > 0 && shape.columns > 0).then_some(shape)
        });
        parsed.ok_or_else(|| NoShape(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Shape;

    #[test]
    fn the_squarest_grid_has_all_pes() {
        let shapes = [1, 2, 4, 6, 7, 12, 16].map(|pes| Shape::squarest(pes).to_string());
        assert_eq!(shapes, ["1x1", "1x2", "2x2", "2x3", "1x7", "3x4", "4x4"]);
    }

    #[test]
    fn shapes_are_parsed_and_must_fit() {
        let shape = "2x3".parse().expect("a shape");
        assert_eq!(shape, Shape { rows: 2, columns: 3 });
        for text in ["", "2", "0x3", "2x", "2x3x4", "-1x2"] {
            assert!(text.parse::<Shape>().is_err(), "{text}");
        }
        assert_eq!(Shape::of(Some(shape), 6), Ok(shape));
        let refused = Shape::of(Some(shape), 4).expect_err("six places");
        let said = "a grid of 2x3 has 6 places, but there are 4 PEs: try 2x2";
        assert_eq!(refused.to_string(), said);
    }
}
