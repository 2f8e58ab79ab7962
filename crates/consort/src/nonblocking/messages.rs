//! Nonblocking messages from one PE to another, and the messages that a blocking call leaves to be
//! sent later.

use std::panic::Location;

use consort_fabric::{Pod, Rank};
use consort_native::Site;

use super::{Overlap, Request, buffers::Pair, shape::Shape, source::Source};
#[cfg(doc)]
use crate::Error;
use crate::{Result, Team, collectives::combine::Nothing};

/// # Nonblocking messages
impl Team {
    /// Starts to send `data` to PE `to`, which [receives](Team::receive) it, by a blocking call or
    /// by a [started](Team::start_receive) one. The request returns `data` when it may be changed:
    /// up to [`EAGER_BYTES`](crate::EAGER_BYTES), possibly before it is received.
    ///
    /// Messages from one PE to another are received in the order in which their sends were made or
    /// started. Starting one does not wait, unless 48 or more have not been received yet.
    ///
    /// # Errors
    /// As [`Team::send`].
    ///
    /// ```
    /// # use consort::Job;
    /// let results = Job::threads(3).run(|pe| {
    ///     let world = pe.world();
    ///     let from_left = world.start_receive(world.left(), vec![0_u32; 100_000])?;
    ///     let to_right = world.start_send(world.right(), vec![world.rank().0; 100_000])?;
    ///     // ... work that needs neither ...
    ///     to_right.wait()?;
    ///     Ok(from_left.wait()?[99_999])
    /// })?;
    /// assert_eq!(results, [2, 0, 1]);
    /// # Ok::<(), consort::Error>(())
    /// ```
    #[track_caller]
    pub fn start_send<T: Pod + Send>(&self, to: Rank, data: Vec<T>) -> Result<Request<Vec<T>>> {
        let pair = self.messages_to(to)?;
        let ready = pair.state.message_plan::<T>(data.len())?;
        let (shape, buffers) = (Shape::using([true, false]), Pair::new(data, Vec::new(), Nothing));
        pair.start_owned(ready, shape, buffers, |pair, _| pair.source, Location::caller())
    }

    /// Starts to receive a message from PE `from` into `data`, which has the message's length, and
    /// whose content is ignored. See [`Team::start_send`].
    ///
    /// # Errors
    /// As [`Team::send`].
    #[track_caller]
    pub fn start_receive<T: Pod + Send>(
        &self,
        from: Rank,
        data: Vec<T>,
    ) -> Result<Request<Vec<T>>> {
        let pair = self.messages_from(from)?;
        let ready = pair.state.message_plan::<T>(data.len())?;
        let (shape, buffers) = (Shape::using([false, true]), Pair::new(Vec::new(), data, Nothing));
        pair.start_owned(ready, shape, buffers, |pair, _| pair.target, Location::caller())
    }

    /// Sends a copy of a message, in the team that carries it: the caller continues immediately.
    pub(crate) fn send_copy<T: Pod>(&self, data: &[T], site: Site) -> Result<()> {
        let ready = self.state.message_plan::<T>(data.len())?;
        let source: Vec<u8> = bytemuck::cast_slice(data).to_vec();
        let buffers = Pair::new(source, Vec::new(), Nothing);
        self.start_owned(ready, Shape::using([true, false]), buffers, |_, _| (), site).map(drop)
    }
}

/// # Messages, on borrowed slices
impl<'scope> Overlap<'scope, '_> {
    /// Starts to send `source` to PE `to`. The request returns it. See [`Team::start_send`].
    ///
    /// # Errors
    /// As [`Team::send`].
    #[track_caller]
    pub fn start_send<T: Pod + Send, S: Source<T> + 'scope>(
        &'scope self,
        to: Rank,
        source: S,
    ) -> Result<Request<S>> {
        let pair = self.team().messages_to(to)?;
        let ready = pair.state.message_plan::<T>(source.elements().len())?;
        let buffers = (source, <&mut [T]>::default());
        self.start_message((pair, ready), buffers, true, |source, _| source, Location::caller())
    }

    /// Starts to receive a message from PE `from` into `target`, which has the message's length.
    /// The request returns `target`. See [`Team::start_send`].
    ///
    /// # Errors
    /// As [`Team::send`].
    #[track_caller]
    pub fn start_receive<T: Pod + Send>(
        &'scope self,
        from: Rank,
        target: &'scope mut [T],
    ) -> Result<Request<&'scope mut [T]>> {
        let pair = self.team().messages_from(from)?;
        let ready = pair.state.message_plan::<T>(target.len())?;
        let buffers = (<&mut [T]>::default(), target);
        self.start_message((pair, ready), buffers, false, |_, target| target, Location::caller())
    }

    /// Starts to send elements of type `T` as bytes.
    pub(crate) fn start_send_bytes<T: Pod>(
        &'scope self,
        to: Rank,
        data: &'scope [T],
        site: Site,
    ) -> Result<()> {
        let pair = self.team().messages_to(to)?;
        let ready = pair.state.message_plan::<T>(data.len())?;
        let bytes: &[u8] = bytemuck::cast_slice(data);
        let buffers = (bytes, <&mut [u8]>::default());
        self.start_message((pair, ready), buffers, true, |_, _| (), site).map(drop)
    }
}
