//! Access to a peer's buffer: exposed and attached, or reached directly in symmetric memory.
//!
//! The rendezvous of the GASNet collectives (Nishtala, Zheng, Hargrove and Yelick 2011, section
//! 3.3.2): a buffer is exposed, attached and detached. In symmetric memory only the signals that
//! the modes require remain:
//!
//! | mode | signals |
//! | --- | --- |
//! | entry Mine | the owner signals its users that it has entered; otherwise they begin at once |
//! | exit Mine | the users signal the owner that they are done; otherwise it does not wait |
//!
//! With mode None no PE waits, and with All a barrier synchronizes. But in a team of two, a barrier
//! is one signal, so the data must synchronize the other direction. If data goes down, the root
//! signals that it has entered; if data goes up, the other PE signals that it is done. The root is
//! the owner in both cases.

use consort_fabric::{
    Channel, MachineModel, Messages, Op, Query, Rank, Rendezvous, Span, SyncMode,
};

use crate::{Direction, Setting};

/// The way to access buffers in a call. Each owner has one buffer, as exposure 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Owners expose, users attach and detach.
    Exposes,
    /// Users reach the buffers directly.
    Reaches {
        /// The channel in which PE 0 signals that it has entered, if needed. The other PEs use the
        /// following channels.
        ready: Option<Channel>,
        /// The channel in which PE 0 signals that it is done, if needed. The other PEs use the
        /// following channels.
        done: Option<Channel>,
    },
}

/// The schedule of gathers and scatters that copy blocks directly between callers' buffers.
#[derive(Clone, Copy, Hash)]
pub struct RootedCopy {
    /// The way to access the root's buffer.
    pub access: Access,
    /// The root.
    pub root: Rank,
    /// Bytes of a block.
    pub bytes: usize,
}

impl RootedCopy {
    /// Creates the schedule for blocks that go from the root or to it. `None` if the fabric cannot
    /// expose buffers.
    #[must_use]
    pub fn new(setting: &Setting, direction: Direction) -> Option<Self> {
        let access = Access::new(setting, direction)?;
        Some(Self { access, root: setting.call.root, bytes: setting.call.bytes })
    }

    /// Returns the model's estimate for concurrent copies of a block, in nanoseconds.
    #[must_use]
    pub fn cost_ns(query: &Query, direction: Direction, model: &MachineModel) -> f64 {
        let copies = (f64::from(query.pes) - 1.0) / model.cores_of(query.pes);
        let copiers = f64::from(model.cores.min(query.pes)) - 1.0;
        let copy = model.pulled_ns(query.bytes as f64, copiers) * copies.max(1.0);
        Access::cost_ns(query, direction, model) + copy
    }
}

fn of(first: Channel, rank: Rank) -> Channel {
    Channel::new(first.index() + rank.0)
}

impl Access {
    /// Returns the access for an algorithm whose data moves in this direction: between the root's
    /// buffer and the other PEs, or between all PEs. `None` if the fabric cannot expose buffers.
    #[must_use]
    pub fn new(setting: &Setting, direction: Direction) -> Option<Self> {
        setting.capabilities.exposes.then_some(())?;
        if !setting.call.symmetric || setting.lines() < 2 * setting.call.pes {
            return Some(Self::Exposes);
        }
        let modes = (setting.call.sync.entry, setting.call.sync.exit);
        let (ready, done) = signalled(modes, direction, setting.call.pes);
        Some(Self::Reaches {
            ready: ready.then(|| setting.channel(0)),
            done: done.then(|| setting.channel(setting.call.pes)),
        })
    }

    /// Exposes the owner's buffer to a user.
    ///
    /// # Errors
    /// If the job has failed; also in all methods below.
    #[inline(always)]
    pub async fn expose<F: Messages + Rendezvous>(self, f: &F, to: Rank, buffer: Span) -> Op {
        match self {
            Self::Exposes => f.expose(to, 0, buffer).await,
            Self::Reaches { ready: Some(ready), .. } => f.signal(to, of(ready, f.rank()), 0).await,
            Self::Reaches { ready: None, .. } => Ok(()),
        }
    }

    /// Attaches the owner's buffer, whose span the user knows.
    ///
    /// # Errors
    /// See [`Access::expose`].
    ///
    /// # Panics
    /// As [`Rma::reach`](consort_fabric::Rma::reach), if the setting has symmetric buffers and the
    /// call does not.
    #[inline(always)]
    pub async fn attach<F: Messages + Rendezvous>(
        self,
        f: &F,
        from: Rank,
        buffer: Span,
    ) -> Op<F::Remote> {
        let ready = match self {
            Self::Exposes => return f.attach(from, 0).await,
            Self::Reaches { ready, .. } => ready,
        };
        if let Some(ready) = ready {
            f.wait(of(ready, from), 0).await?;
        }
        Ok(f.reach(from, buffer))
    }

    /// Detaches the owner's buffer.
    ///
    /// # Errors
    /// See [`Access::expose`].
    #[inline(always)]
    pub async fn detach<F: Messages + Rendezvous>(
        self,
        f: &F,
        owner: Rank,
        remote: F::Remote,
    ) -> Op {
        match self {
            Self::Exposes => f.detach(remote).await,
            Self::Reaches { done: Some(done), .. } => f.signal(owner, of(done, f.rank()), 0).await,
            Self::Reaches { done: None, .. } => Ok(()),
        }
    }

    /// Waits until the users have detached the owner's buffer, if the modes require that.
    ///
    /// # Errors
    /// See [`Access::expose`].
    #[inline(always)]
    pub async fn await_detached<F: Messages + Rendezvous>(
        self,
        f: &F,
        users: impl Iterator<Item = Rank>,
    ) -> Op {
        match self {
            Self::Exposes => f.await_detached().await,
            Self::Reaches { done: Some(done), .. } => {
                for user in users {
                    f.wait(of(done, user), 0).await?;
                }
                Ok(())
            }
            Self::Reaches { done: None, .. } => Ok(()),
        }
    }

    /// Returns the model's estimate without the copies, in nanoseconds.
    #[must_use]
    pub fn cost_ns(query: &Query, direction: Direction, model: &MachineModel) -> f64 {
        let others = f64::from(query.pes) - 1.0;
        let more = (others - 1.0).max(0.0);
        if query.symmetric {
            let (ready, done) =
                signalled((query.sync.entry, query.sync.exit), direction, query.pes);
            let signals = f64::from(u8::from(ready)) + f64::from(u8::from(done));
            let words = signals * (model.overhead_ns * others + model.next_line_ns * more);
            return model.transfer_ns / 2.0 + model.hops_ns(signals, query.pes) + words;
        }
        // A signal that the buffer is exposed, one that it is detached, and one hop to the next
        // call.
        model.hops_ns(3.0, query.pes) + 2.0 * more * model.next_line_ns
    }
}

/// Returns whether owners signal that they have entered, and whether users signal that they are
/// done.
fn signalled((entry, exit): (SyncMode, SyncMode), direction: Direction, pes: u32) -> (bool, bool) {
    let is_one_signal = pes == 2 && (entry == SyncMode::All || exit == SyncMode::All);
    (
        entry == SyncMode::Mine || (is_one_signal && direction == Direction::Down),
        exit == SyncMode::Mine || (is_one_signal && direction == Direction::Up),
    )
}
