//! Parts of matrices that are stored by columns.

use std::ops::{Deref, Range};

/// A part of a matrix, whose elements lie in `D`: a [`View`] or a [`ViewMut`].
#[derive(Clone, Copy, Debug)]
pub struct Part<D> {
    data: D,
    rows: usize,
    columns: usize,
    stride: usize,
}

/// A part of a matrix.
pub type View<'m> = Part<&'m [f64]>;

/// A part of a matrix that may be changed.
pub type ViewMut<'m> = Part<&'m mut [f64]>;

/// The elements of a slice that lie in a part, from the first to the last.
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
    /// The matrix in `data` whose columns begin `stride` elements apart.
    ///
    /// # Panics
    /// When its columns overlap or `data` is too short.
    #[must_use]
    pub fn new(data: D, (rows, columns): (usize, usize), stride: usize) -> Self {
        assert_fits(data.len(), rows, columns, stride);
        Self { data, rows, columns, stride }
    }

    /// The number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The distance of columns.
    #[must_use]
    pub fn stride(&self) -> usize {
        self.stride
    }
}

impl<'m> View<'m> {
    /// The elements from the first to the last, with what lies between columns.
    #[must_use]
    pub fn data(&self) -> &'m [f64] {
        self.data
    }

    /// The elements of a column.
    #[must_use]
    pub fn column(&self, column: usize) -> &'m [f64] {
        &self.data[extent(&(0..self.rows), &(column..column + 1), self.stride)]
    }

    /// Copies the elements to where its columns follow each other.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn copy_to(&self, to: &mut [f64]) {
        assert_eq!(to.len(), self.rows * self.columns, "the elements of a part");
        for (column, to) in to.chunks_exact_mut(self.rows.max(1)).enumerate() {
            to.copy_from_slice(self.column(column));
        }
    }

    /// A part of this part.
    ///
    /// # Panics
    /// When it reaches out.
    #[must_use]
    pub fn part(&self, rows: Range<usize>, columns: Range<usize>) -> Self {
        assert!(rows.end <= self.rows && columns.end <= self.columns, "{rows:?}, {columns:?}");
        let data = &self.data[extent(&rows, &columns, self.stride)];
        Self { data, rows: rows.len(), columns: columns.len(), stride: self.stride }
    }
}

impl ViewMut<'_> {
    /// The elements from the first to the last, with what lies between columns.
    #[must_use]
    pub fn data(&mut self) -> &mut [f64] {
        self.data
    }

    /// The same part, to be read.
    #[must_use]
    pub fn view(&self) -> View<'_> {
        View { data: self.data, rows: self.rows, columns: self.columns, stride: self.stride }
    }

    /// A part of this part.
    ///
    /// # Panics
    /// When it reaches out.
    #[must_use]
    pub fn part(&mut self, rows: Range<usize>, columns: Range<usize>) -> ViewMut<'_> {
        assert!(rows.end <= self.rows && columns.end <= self.columns, "{rows:?}, {columns:?}");
        let data = &mut self.data[extent(&rows, &columns, self.stride)];
        ViewMut { data, rows: rows.len(), columns: columns.len(), stride: self.stride }
    }

    /// The columns before `column`, and the others.
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
