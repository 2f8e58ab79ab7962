//! Messages from one PE to another. Blocking calls use arrays; nonblocking calls own their data.

use consort::Rank;
use pyo3::prelude::*;

use crate::{
    arrays::{Read, Written, for_type_of},
    dispatch::call,
    requests::{Request, keep},
    types::Data,
};

/// A PE, and the array that is sent to it or received from it.
pub(crate) type With<'a, 'py> = (Rank, &'a Bound<'py, PyAny>);

/// Sends a message in the team with this launch number and index.
pub(crate) fn send(py: Python<'_>, team: (u64, usize), sent: With<'_, '_>) -> PyResult<()> {
    for_type_of!(sent.1, T => exchange::<T>(py, team, Some(sent), None))
}

/// Receives a message.
pub(crate) fn receive(py: Python<'_>, team: (u64, usize), received: With<'_, '_>) -> PyResult<()> {
    for_type_of!(received.1, T => exchange::<T>(py, team, None, Some(received)))
}

/// Sends one message and receives another one at the same time.
pub(crate) fn send_receive(
    py: Python<'_>,
    team: (u64, usize),
    sent: With<'_, '_>,
    received: With<'_, '_>,
) -> PyResult<()> {
    for_type_of!(sent.1, T => exchange::<T>(py, team, Some(sent), Some(received)))
}

fn exchange<T: Data>(
    py: Python<'_>,
    (launch, index): (u64, usize),
    sent: Option<With<'_, '_>>,
    received: Option<With<'_, '_>>,
) -> PyResult<()> {
    let source = match sent {
        Some((to, array)) => Some((to, Read::<T>::new(array, "the array")?)),
        None => None,
    };
    let mut target = match received {
        Some((from, array)) => {
            let read = source.as_ref().map(|(_, read)| read);
            Some((from, Written::<T>::new(array, read, "out")?))
        }
        None => None,
    };
    let sent = source.as_ref().map(|(to, source)| (*to, source.slice()));
    let received = target.as_mut().map(|(from, target)| (*from, target.slice()));
    let name = match (&sent, &received) {
        (Some(_), Some(_)) => "send_receive",
        (Some(_), None) => "send",
        (None, _) => "receive",
    };
    call(py, launch, index, |team, running| {
        running.call.set(name);
        match (sent, received) {
            (Some((to, sent)), None) => team.send(to, sent),
            (None, Some((from, received))) => team.receive(from, received),
            (Some((to, sent)), Some((from, received))) => {
                team.send_receive(to, sent, from, received)
            }
            (None, None) => Ok(()),
        }
    })
}

/// Starts sending a copy of an array.
pub(crate) fn start_send(
    py: Python<'_>,
    team: (u64, usize),
    sent: With<'_, '_>,
) -> PyResult<Request> {
    for_type_of!(sent.1, T => start_send_of::<T>(py, team, sent))
}

fn start_send_of<T: Data>(
    py: Python<'_>,
    (launch, index): (u64, usize),
    (to, array): With<'_, '_>,
) -> PyResult<Request> {
    let data = Read::<T>::new(array, "the array")?.slice().to_vec();
    let number = call(py, launch, index, |team, running| {
        Ok(keep(running, Box::new(team.start_send(to, data)?)))
    })?;
    Ok(Request::new(launch, number))
}

/// Starts receiving a message of `length` elements of the type of `like`.
pub(crate) fn start_receive(
    py: Python<'_>,
    team: (u64, usize),
    (from, like): With<'_, '_>,
    length: usize,
) -> PyResult<Request> {
    for_type_of!(like, T => start_receive_of::<T>(py, team, from, length))
}

fn start_receive_of<T: Data>(
    py: Python<'_>,
    (launch, index): (u64, usize),
    from: Rank,
    length: usize,
) -> PyResult<Request> {
    let number = call(py, launch, index, |team, running| {
        let data = vec![T::zeroed(); length];
        Ok(keep(running, Box::new(team.start_receive(from, data)?)))
    })?;
    Ok(Request::new(launch, number))
}
