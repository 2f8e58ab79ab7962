//! The data that a scope's call reads, and its request returns.
//!
//! The call holds the reference itself, so nothing else can use an exclusive reference in the
//! meantime. Only references to slices, arrays and vectors are sources, because each access to them
//! yields the same elements.

/// Consecutive elements that stay where they are.
pub trait Elements<T> {
    fn elements(&self) -> &[T];
}

impl<T> Elements<T> for [T] {
    fn elements(&self) -> &[T] {
        self
    }
}

impl<T, const N: usize> Elements<T> for [T; N] {
    fn elements(&self) -> &[T] {
        self
    }
}

impl<T> Elements<T> for Vec<T> {
    fn elements(&self) -> &[T] {
        self
    }
}

impl<T, D: Elements<T> + ?Sized> Elements<T> for &D {
    fn elements(&self) -> &[T] {
        (**self).elements()
    }
}

impl<T, D: Elements<T> + ?Sized> Elements<T> for &mut D {
    fn elements(&self) -> &[T] {
        (**self).elements()
    }
}

/// The data that a scope's call reads: a slice, an array or a vector, borrowed as `&` or as `&mut`.
///
/// While the call is pending, the program may also read a shared borrow. An exclusive one comes
/// back when the call is complete, so the program can fill it for the next call. See
/// [`Overlap`](super::Overlap).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a source of `{T}`",
    note = "give a `&` or `&mut` of a slice, an array or a vector of the target's elements"
)]
pub trait Source<T>: Send + Elements<T> {}

impl<T, D: Elements<T> + Sync + ?Sized> Source<T> for &D {}

impl<T, D: Elements<T> + Send + ?Sized> Source<T> for &mut D {}
