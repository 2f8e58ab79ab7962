//! Exchanges of an array between the PEs of a team, plane by plane.
//!
//! A plane has a block for each PE of the team. Planes are computed one after the other, and those
//! that come from the others are taken in the same order.
//!
//! Source: Nishtala et al. (2009), "Scaling communication-intensive applications on BlueGene/P
//! using one-sided communication and overlap", section 5: slabs and packed slabs. There packed
//! slabs wait for all planes; here that is called whole, and packed slabs overlap too.

use std::collections::VecDeque;

use consort::{Request, Result, Team};
use consort_apps_kernels::{Complex64, recorder::Recorder};

/// How planes travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exchange {
    /// All in one blocking all-to-all, when all are computed.
    Whole,
    /// Each in a nonblocking all-to-all, which starts when it is computed.
    Slabs,
    /// Some planes together, likewise.
    PackedSlabs {
        /// The planes of a message, at least one.
        planes: usize,
    },
}

/// Messages that may be under way. Teams of many PEs have windows of 16 calls.
const UNDER_WAY: usize = 8;

/// The blocks of one plane, within a message of several.
pub(crate) struct Blocks<'m> {
    message: &'m mut [Complex64],
    /// The planes of the message, and the number of this one.
    planes: usize,
    plane: usize,
    block: usize,
}

impl Blocks<'_> {
    /// The block for or from a PE of the team.
    pub(crate) fn of(&mut self, pe: usize) -> &mut [Complex64] {
        &mut self.message[(pe * self.planes + self.plane) * self.block..][..self.block]
    }
}

/// The planes that each PE of a team exchanges.
#[derive(Clone, Copy)]
pub(crate) struct Planes<'p> {
    pub(crate) team: Team<'p>,
    /// Their number.
    pub(crate) planes: usize,
    /// Elements of a block.
    pub(crate) block: usize,
}

impl Planes<'_> {
    /// The blocks of a plane of a message.
    fn blocks<'m>(&self, message: &'m mut [Complex64], plane: usize) -> Blocks<'m> {
        let planes = message.len() / (self.team.size() as usize * self.block);
        Blocks { message, planes, plane, block: self.block }
    }
}

/// What a message is sent from, and what comes from the others.
type Buffers = (Vec<Complex64>, Vec<Complex64>);

/// A message under way, its first plane and the number of its planes.
type Message<'p> = (Request<'p, Buffers>, usize, usize);

/// Exchanges planes, in memory that it keeps for the next time.
pub(crate) struct Exchanger {
    exchange: Exchange,
    spare: Vec<Buffers>,
}

impl Exchanger {
    pub(crate) fn new(exchange: Exchange) -> Self {
        Self { exchange, spare: Vec::new() }
    }

    /// Exchanges all planes. `compute` fills the blocks of a plane, and `take` uses those that have
    /// come. Collective.
    ///
    /// # Errors
    /// See [`Team`].
    pub(crate) fn run<'p>(
        &mut self,
        all: Planes<'p>,
        recorder: &Recorder,
        mut compute: impl FnMut(usize, &mut Blocks<'_>),
        mut take: impl FnMut(usize, &mut Blocks<'_>),
    ) -> Result<()> {
        let together = match self.exchange {
            Exchange::Whole => return self.whole(all, recorder, compute, take),
            Exchange::Slabs => 1,
            Exchange::PackedSlabs { planes } => planes,
        };
        let mut under_way: VecDeque<Message<'p>> = VecDeque::new();
        for first in (0..all.planes).step_by(together) {
            let planes = together.min(all.planes - first);
            let (mut sent, received) = recorder.communicate(|| self.buffers(all, planes));
            for plane in 0..planes {
                recorder.compute(|| compute(first + plane, &mut all.blocks(&mut sent, plane)));
                recorder.communicate(|| all.team.progress())?;
            }
            let request =
                recorder.communicate(|| all.team.start_all_to_all_into(sent, received))?;
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
        recorder.communicate(|| all.team.all_to_all_slice(&sent, &mut received))?;
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
        (request, first, planes): Message<'_>,
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

    /// The buffers of a message of so many planes.
    fn buffers(&mut self, all: Planes<'_>, planes: usize) -> Buffers {
        let (mut sent, mut received) = self.spare.pop().unwrap_or_default();
        let len = all.team.size() as usize * planes * all.block;
        sent.resize(len, Complex64::ZERO);
        received.resize(len, Complex64::ZERO);
        (sent, received)
    }
}
