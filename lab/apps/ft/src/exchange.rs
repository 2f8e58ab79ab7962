//! Exchanges of an array between the PEs of a team, plane by plane.
//!
//! A plane has a block for each PE of the team. A PE computes its planes one after the other, and
//! takes the planes of the others in the same order.
//!
//! Source: Nishtala et al. (2009), "Scaling communication-intensive applications on BlueGene/P
//! using one-sided communication and overlap", section 5: slabs and packed slabs. In that paper
//! packed slabs wait for all planes. Here that variant is called whole, and packed slabs overlap
//! too.

use std::collections::VecDeque;

use consort::{Result, Team, nonblocking::Request};
use consort_apps_kernels::{Complex64, recorder::Recorder};

/// How planes are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// All planes in one blocking all-to-all, after all are computed.
    Whole,
    /// Each plane in a nonblocking all-to-all, which starts as soon as the plane is computed.
    Slabs,
    /// Several planes in a nonblocking all-to-all.
    PackedSlabs {
        /// The number of planes in a message, at least 1.
        planes: usize,
    },
}

/// The largest number of messages in progress. Teams of many PEs have windows of 16 calls.
const UNDER_WAY: usize = 8;

/// The blocks of one plane in a message of several planes.
pub(crate) struct Blocks<'m> {
    message: &'m mut [Complex64],
    /// The number of planes in the message, and the index of this one.
    planes: usize,
    plane: usize,
    block: usize,
}

impl Blocks<'_> {
    /// Returns the block to send to, or received from, a PE of the team.
    pub(crate) fn of(&mut self, pe: usize) -> &mut [Complex64] {
        &mut self.message[(pe * self.planes + self.plane) * self.block..][..self.block]
    }
}

/// The planes that each PE of a team exchanges.
#[derive(Clone, Copy)]
pub(crate) struct Planes<'t> {
    pub(crate) team: &'t Team,
    /// The number of planes.
    pub(crate) planes: usize,
    /// The number of elements in a block.
    pub(crate) block: usize,
}

impl Planes<'_> {
    /// Returns the blocks of one plane of a message.
    fn blocks<'m>(&self, message: &'m mut [Complex64], plane: usize) -> Blocks<'m> {
        let planes = message.len() / (self.team.size() * self.block);
        Blocks { message, planes, plane, block: self.block }
    }
}

/// The buffer to send from, and the buffer to receive into.
type Buffers = (Vec<Complex64>, Vec<Complex64>);

/// A message in progress, its first plane and its number of planes.
type Message = (Request<Buffers>, usize, usize);

/// Exchanges planes, and keeps its buffers for the next time.
pub(crate) struct Exchanger {
    exchange: Exchange,
    spare: Vec<Buffers>,
}

impl Exchanger {
    pub(crate) fn new(exchange: Exchange) -> Self {
        Self { exchange, spare: Vec::new() }
    }

    /// Exchanges all planes. `compute` fills the blocks of a plane, and `take` uses the blocks that
    /// have arrived. Collective.
    ///
    /// # Errors
    /// See [`Team`].
    pub(crate) fn run(
        &mut self,
        all: Planes<'_>,
        recorder: &Recorder,
        mut compute: impl FnMut(usize, &mut Blocks<'_>),
        mut take: impl FnMut(usize, &mut Blocks<'_>),
    ) -> Result<()> {
        let together = match self.exchange {
            Exchange::Whole => return self.whole(all, recorder, compute, take),
            Exchange::Slabs => 1,
            Exchange::PackedSlabs { planes } => planes,
        };
        let mut under_way: VecDeque<Message> = VecDeque::new();
        for first in (0..all.planes).step_by(together) {
            let planes = together.min(all.planes - first);
            let (mut sent, received) = recorder.communicate(|| self.buffers(all, planes));
            for plane in 0..planes {
                recorder.compute(|| compute(first + plane, &mut all.blocks(&mut sent, plane)));
                recorder.communicate(|| all.team.progress())?;
            }
            let request =
                recorder.communicate(|| all.team.start_into(sent, received).all_to_all())?;
            under_way.push_back((request, first, planes));
            while let Some(mut message) = under_way.pop_front() {
                let is_full = under_way.len() >= UNDER_WAY;
                if !is_full && !recorder.communicate(|| message.0.test())? {
                    under_way.push_front(message);
                    break;
                }
                self.receive(all, message, recorder, &mut take)?;
            }
        }
        while let Some(message) = under_way.pop_front() {
            self.receive(all, message, recorder, &mut take)?;
        }
        Ok(())
    }

    fn whole(
        &mut self,
        all: Planes<'_>,
        recorder: &Recorder,
        mut compute: impl FnMut(usize, &mut Blocks<'_>),
        mut take: impl FnMut(usize, &mut Blocks<'_>),
    ) -> Result<()> {
        let (mut sent, mut received) = recorder.communicate(|| self.buffers(all, all.planes));
        recorder.compute(|| {
            (0..all.planes).for_each(|plane| compute(plane, &mut all.blocks(&mut sent, plane)));
        });
        recorder.communicate(|| all.team.slices(&sent, &mut received).all_to_all())?;
        recorder.compute(|| {
            (0..all.planes).for_each(|plane| take(plane, &mut all.blocks(&mut received, plane)));
        });
        self.spare.push((sent, received));
        Ok(())
    }

    /// Waits for a message and takes its planes.
    fn receive(
        &mut self,
        all: Planes<'_>,
        (request, first, planes): Message,
        recorder: &Recorder,
        take: &mut impl FnMut(usize, &mut Blocks<'_>),
    ) -> Result<()> {
        let (sent, mut received) = recorder.wait(|| request.wait())?;
        recorder.compute(|| {
            for plane in 0..planes {
                take(first + plane, &mut all.blocks(&mut received, plane));
            }
        });
        self.spare.push((sent, received));
        Ok(())
    }

    /// Returns the buffers of a message of `planes` planes.
    fn buffers(&mut self, all: Planes<'_>, planes: usize) -> Buffers {
        let (mut sent, mut received) = self.spare.pop().unwrap_or_default();
        let len = all.team.size() * planes * all.block;
        sent.resize(len, Complex64::ZERO);
        received.resize(len, Complex64::ZERO);
        (sent, received)
    }
}
