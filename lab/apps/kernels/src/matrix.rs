//! A PE's part of a matrix that is distributed over a grid of PEs.

use crate::{
    cyclic::Cyclic,
    dense::{View, ViewMut},
};

/// A PE's part of a matrix: its rows of its columns, stored by columns.
#[derive(Clone, Debug)]
pub struct Matrix {
    /// The distribution of the rows.
    pub rows: Cyclic,
    /// The distribution of the columns.
    pub columns: Cyclic,
    data: Vec<f64>,
}

impl Matrix {
    /// Returns the matrix whose entry in a row and column is `entry(row, column)`.
    #[must_use]
    pub fn new(rows: Cyclic, columns: Cyclic, entry: impl Fn(usize, usize) -> f64) -> Self {
        let column = |column| {
            let (column, entry) = (columns.place(column), &entry);
            (0..rows.own_len()).map(move |row| entry(rows.place(row), column))
        };
        let data = (0..columns.own_len()).flat_map(column).collect();
        Self { rows, columns, data }
    }

    /// Returns this PE's part.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        let extents = (self.rows.own_len(), self.columns.own_len());
        View::new(&self.data, extents, extents.0)
    }

    /// Returns this PE's part, mutable.
    #[must_use]
    pub fn view_mut(&mut self) -> ViewMut<'_> {
        let extents = (self.rows.own_len(), self.columns.own_len());
        ViewMut::new(&mut self.data, extents, extents.0)
    }

    /// Returns this PE's entries with their global rows and columns.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, f64)> {
        let (rows, height) = (self.rows, self.rows.own_len());
        self.data.iter().enumerate().map(move |(at, &entry)| {
            (rows.place(at % height), self.columns.place(at / height), entry)
        })
    }
}
