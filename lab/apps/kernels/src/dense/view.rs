//! Parts of matrices that are stored by columns.

use std::ops::{Deref, Range};

/// A part of a matrix whose elements are in `D`: a [`View`] or a [`ViewMut`].
#[derive(Clone, Copy, Debug)]
pub struct Part<D> {
    data: D,
    rows: usize,
    columns: usize,
    stride: usize,
}

/// A part of a matrix.
pub type View<'m> = Part<&'m [f64]>;

/// A mutable part of a matrix.
pub type ViewMut<'m> = Part<&'m mut [f64]>;

/// Returns the range of a slice from the first to the last element of a part.
fn extent(rows: &Range<usize>, columns: &Range<usize>, stride: usize) -> Range<usize> {
    if rows.is_empty() || columns.is_empty() {
        return 0..0;
    }
    columns.start * stride + rows.start..(columns.end - 1) * stride + rows.end
}

fn assert_fits(len: usize, rows: usize, columns: usize, stride: usize) {
    assert!(rows <= stride || columns <= 1, "columns of {rows} rows overlap at stride {stride}");
    let end = extent(&(0..rows), &(0..columns), stride).end;
    assert!(end <= len, "a matrix of {rows} by {columns} needs {end} elements, not {len}");
}

impl<D: Deref<Target = [f64]>> Part<D> {
    /// Returns the matrix in `data` whose columns begin `stride` elements apart.
    ///
    /// # Panics
    /// When its columns overlap or `data` is too short.
    #[must_use]
    pub fn new(data: D, (rows, columns): (usize, usize), stride: usize) -> Self {
        assert_fits(data.len(), rows, columns, stride);
        Self { data, rows, columns, stride }
    }

    /// Returns the number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Returns the number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Returns the distance between columns.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.stride
    }
}

impl<'m> View<'m> {
    /// Returns the elements from the first to the last, including the gaps between columns.
    #[must_use]
    pub fn data(&self) -> &'m [f64] {
        self.data
    }

    /// Returns the elements of a column.
    #[must_use]
    pub fn column(&self, column: usize) -> &'m [f64] {
        &self.data[extent(&(0..self.rows), &(column..column + 1), self.stride)]
    }

    /// Copies the columns to `to`, one directly after the other.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn copy_to(&self, to: &mut [f64]) {
        assert_eq!(to.len(), self.rows * self.columns, "the elements of a part");
        for (column, to) in to.chunks_exact_mut(self.rows.max(1)).enumerate() {
            to.copy_from_slice(self.column(column));
        }
    }

    /// Returns a part of this part.
    ///
    /// # Panics
    /// When it exceeds this part.
    #[must_use]
    pub fn part(&self, rows: Range<usize>, columns: Range<usize>) -> Self {
        assert!(rows.end <= self.rows && columns.end <= self.columns, "{rows:?}, {columns:?}");
        let data = &self.data[extent(&rows, &columns, self.stride)];
        Self { data, rows: rows.len(), columns: columns.len(), stride: self.stride }
    }
}

impl ViewMut<'_> {
    /// Returns the elements from the first to the last, including the gaps between columns.
    #[must_use]
    pub fn data(&mut self) -> &mut [f64] {
        self.data
    }

    /// Returns the same part, read-only.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { data: self.data, rows: self.rows, columns: self.columns, stride: self.stride }
    }

    /// Returns a part of this part.
    ///
    /// # Panics
    /// When it exceeds this part.
    #[must_use]
    pub fn part(&mut self, rows: Range<usize>, columns: Range<usize>) -> ViewMut<'_> {
        assert!(rows.end <= self.rows && columns.end <= self.columns, "{rows:?}, {columns:?}");
        let data = &mut self.data[extent(&rows, &columns, self.stride)];
        ViewMut { data, rows: rows.len(), columns: columns.len(), stride: self.stride }
    }

    /// Returns the columns before `column`, and the rest.
    ///
    /// # Panics
    /// When there are fewer columns.
    #[must_use]
    pub fn split_columns(self, column: usize) -> (Self, Self) {
        assert!(column <= self.columns, "{column} of {} columns", self.columns);
        let Self { data, rows, columns, stride } = self;
        let (left, right) = data.split_at_mut((column * stride).min(data.len()));
        let part = |data, columns| Self { data, rows, columns, stride };
        (part(left, column), part(right, columns - column))
    }
}
