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
        /// The planes of a message.
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

/// An exchange among the PEs of a team.
pub(crate) struct Planes<'p> {
    pub(crate) team: Team<'p>,
    /// The planes of each PE.
    pub(crate) planes: usize,
    /// Elements of a block.
    pub(crate) block: usize,
}

/// A message under way, its first plane and the number of its planes.
type Message<'p> = (Request<'p, Vec<Complex64>>, usize, usize);

impl<'p> Planes<'p> {
    /// Exchanges all planes. `compute` fills the blocks of a plane, and `take` uses those that have
    /// come. Collective.
    ///
    /// # Errors
    /// See [`Team`].
    pub(crate) fn exchange(
        &self,
        exchange: Exchange,
        recorder: &Recorder,
        mut compute: impl FnMut(usize, &mut Blocks<'_>),
        mut take: impl FnMut(usize, &mut Blocks<'_>),
    ) -> Result<()> {
        let together = match exchange {
            Exchange::Whole => return self.whole(recorder, compute, take),
            Exchange::Slabs => 1,
            Exchange::PackedSlabs { planes } => planes,
        };
        let mut under_way: VecDeque<Message<'p>> = VecDeque::new();
        let mut spare = Vec::new();
        for first in (0..self.planes).step_by(together) {
            let planes = together.min(self.planes - first);
            let mut message = self.message(spare.pop().unwrap_or_default(), planes);
            for plane in 0..planes {
                recorder.compute(|| compute(first + plane, &mut self.blocks(&mut message, plane)));
                recorder.communicate(|| self.team.progress())?;
            }
            let request = recorder.communicate(|| self.team.start_all_to_all(message))?;
            under_way.push_back((request, first, planes));
            while let Some(mut message) = under_way.pop_front() {
                let is_full = under_way.len() >= UNDER_WAY;
                if !is_full && !recorder.communicate(|| message.0.test())? {
                    under_way.push_front(message);
                    break;
                }
                spare.push(self.receive(message, recorder, &mut take)?);
            }
        }
        while let Some(message) = under_way.pop_front() {
            self.receive(message, recorder, &mut take)?;
        }
        Ok(())
    }

    fn whole(
        &self,
        recorder: &Recorder,
        mut compute: impl FnMut(usize, &mut Blocks<'_>),
        mut take: impl FnMut(usize, &mut Blocks<'_>),
    ) -> Result<()> {
        let mut message = self.message(Vec::new(), self.planes);
        recorder.compute(|| {
            (0..self.planes)
                .for_each(|plane| compute(plane, &mut self.blocks(&mut message, plane)));
        });
        let mut received = self.message(Vec::new(), self.planes);
        recorder.communicate(|| self.team.all_to_all_slice(&message, &mut received))?;
        recorder.compute(|| {
            (0..self.planes).for_each(|plane| take(plane, &mut self.blocks(&mut received, plane)));
        });
        Ok(())
    }

    /// Waits for a message and takes its planes. Returns its memory, to be used again.
    fn receive(
        &self,
        (request, first, planes): Message<'p>,
        recorder: &Recorder,
        take: &mut impl FnMut(usize, &mut Blocks<'_>),
    ) -> Result<Vec<Complex64>> {
        let mut received = recorder.wait(|| request.wait())?;
        recorder.compute(|| {
            for plane in 0..planes {
                take(first + plane, &mut self.blocks(&mut received, plane));
            }
        });
        Ok(received)
    }

    /// A message of so many planes, in memory that was used before.
    fn message(&self, mut memory: Vec<Complex64>, planes: usize) -> Vec<Complex64> {
        memory.resize(self.team.size() as usize * planes * self.block, Complex64::ZERO);
        memory
    }

    fn blocks<'m>(&self, message: &'m mut [Complex64], plane: usize) -> Blocks<'m> {
        let planes = message.len() / (self.team.size() as usize * self.block);
        Blocks { message, planes, plane, block: self.block }
    }
}
