//! The parts that all layouts share: the region of each PE, and the data that transforms need.

use std::ops::Range;

use consort::Result;
use consort_apps_kernels::{
    Complex64,
    recorder::Recorder,
    rows::{Direction, Rows, rows},
};

use crate::exchange::{Exchange, Exchanger};

/// The points of a PE, by their ranges along x, y and z.
#[derive(Clone, Debug)]
pub(crate) struct Region(pub(crate) [Range<usize>; 3]);

impl Region {
    pub(crate) fn points(&self) -> usize {
        self.0.iter().map(Range::len).product()
    }
}

/// A layout of the array.
pub(crate) trait Parts {
    /// Returns this PE's points in space.
    fn space(&self) -> Region;

    /// Returns this PE's points of the transformed array.
    fn spectrum(&self) -> Region;

    /// Transforms the array. Collective.
    fn forward(&mut self, space: &[Complex64], recorder: &Recorder) -> Result<Vec<Complex64>>;

    /// Transforms the array back. Collective.
    fn inverse(
        &mut self,
        spectrum: &[Complex64],
        space: &mut [Complex64],
        recorder: &Recorder,
    ) -> Result<()>;
}

/// The transforms of rows along each dimension, in one direction.
pub(crate) struct Transforms {
    pub(crate) x: Box<dyn Rows>,
    pub(crate) y: Box<dyn Rows>,
    pub(crate) z: Box<dyn Rows>,
}

impl Transforms {
    fn new(extents: [usize; 3], direction: Direction) -> Self {
        let [x, y, z] = extents.map(|len| rows(len, direction));
        Self { x, y, z }
    }
}

/// The data that the transforms of any layout need.
pub(crate) struct Plan {
    /// The points along x, y and z.
    pub(crate) extents: [usize; 3],
    pub(crate) exchanger: Exchanger,
    /// The array between two steps, by z, x, y.
    pub(crate) turned: Vec<Complex64>,
    pub(crate) forward: Transforms,
    pub(crate) inverse: Transforms,
}

impl Plan {
    pub(crate) fn new(extents: [usize; 3], exchange: Exchange) -> Self {
        Self {
            extents,
            exchanger: Exchanger::new(exchange),
            turned: Vec::new(),
            forward: Transforms::new(extents, Direction::Forward),
            inverse: Transforms::new(extents, Direction::Inverse),
        }
    }
}
