//! Collectives and messages on byte strings whose lengths differ between PEs: pickled objects.
//!
//! Each sends the lengths first. All of it is one call, so that no other thread's call comes
//! between. Results are arrays of bytes, which are not copied again.

use consort::{Displacements, Rank};
use pyo3::prelude::*;

use crate::{arrays::array_of, dispatch::call};

/// An array of bytes.
type Bytes<'py> = Bound<'py, PyAny>;
/// The bytes of all PEs one after the other, and where those of each PE end.
type All<'py> = (Bytes<'py>, Vec<usize>);

/// Returns the root's bytes on all other PEs. The root gets none.
pub(crate) fn broadcast<'py>(
    py: Python<'py>,
    (launch, index): (u64, usize),
    data: &[u8],
    root: Rank,
) -> PyResult<Bytes<'py>> {
    let received = call(py, launch, index, |team, _| {
        let length = team.broadcast(data.len(), root)?;
        let is_root = team.rank() == root;
        let mut received = vec![0; if is_root { 0 } else { length }];
        let source = if is_root { data } else { &[] };
        team.slices(source, &mut received).broadcast(root)?;
        Ok(received)
    })?;
    array_of(py, received)
}

/// Returns the bytes of all PEs on the root, or on all PEs if there is none.
pub(crate) fn gather<'py>(
    py: Python<'py>,
    (launch, index): (u64, usize),
    data: &[u8],
    root: Option<Rank>,
) -> PyResult<Option<All<'py>>> {
    let gathered = call(py, launch, index, |team, _| {
        let data = team.values(data).uneven();
        match root {
            Some(root) => data.gather(root),
            None => data.all_gather().map(Some),
        }
    })?;
    let Some((all, blocks)) = gathered else { return Ok(None) };
    let ends = blocks.counts().into_iter().scan(0, |end, count| {
        *end += count;
        Some(*end)
    });
    let ends = ends.collect();
    Ok(Some((array_of(py, all)?, ends)))
}

/// Returns this PE's block of the root's bytes. The blocks, one for each PE, have these lengths.
pub(crate) fn scatter<'py>(
    py: Python<'py>,
    (launch, index): (u64, usize),
    (data, lengths): (&[u8], &[usize]),
    root: Rank,
) -> PyResult<Bytes<'py>> {
    let received = call(py, launch, index, |team, _| {
        let blocks = match team.rank() == root {
            true => Displacements::new(lengths)?,
            false => Displacements::default(),
        };
        team.values(data).uneven().scatter(&blocks, root)
    })?;
    array_of(py, received)
}

/// Sends bytes to a PE.
pub(crate) fn send(
    py: Python<'_>,
    (launch, index): (u64, usize),
    data: &[u8],
    to: Rank,
) -> PyResult<()> {
    call(py, launch, index, |team, _| {
        team.send(to, &[data.len()])?;
        team.send(to, data)
    })
}

/// Returns bytes that a PE has sent by [`send`].
pub(crate) fn receive(
    py: Python<'_>,
    (launch, index): (u64, usize),
    from: Rank,
) -> PyResult<Bytes<'_>> {
    let received = call(py, launch, index, |team, _| {
        let mut length = [0_usize];
        team.receive(from, &mut length)?;
        let mut received = vec![0_u8; length[0]];
        team.receive(from, &mut received)?;
        Ok(received)
    })?;
    array_of(py, received)
}
