//! The benchmark FT of the NAS Parallel Benchmarks: it solves a differential equation with Fourier
//! transforms in three dimensions.
//!
//! Source: Bailey et al. (1991), "The NAS parallel benchmarks", section 2.2.6. An array of random
//! numbers is transformed once. Each iteration multiplies the transformed array by factors,
//! transforms it back, and adds up 1024 of its elements to a checksum. The checksums are published.
//!
//! | module | contents |
//! | --- | --- |
//! | `classes` | sizes, and published checksums |
//! | `check` | compares checksums with the published ones |
//! | `random` | the initial array |
//! | `layout` | slabs and pencils: the distribution of the array over the PEs, and its transforms |
//! | `exchange` | exchanges of planes between PEs |
//! | `transpose` | transposes on one PE |
//!
//! The measured time includes the first transform and all iterations, but not the initial array.

#[cfg(test)]
use consort_sandbox as _;

mod check;
mod classes;
mod exchange;
mod layout;
mod random;
mod transpose;

use std::f64::consts::PI;

use consort::{Result, Team, ops::Sum};
use consort_apps_kernels::{Complex64, grid::Shape, recorder::Recorder};

pub use check::{Wrong, check};
pub use classes::Class;
pub use exchange::Exchange;

use layout::{Parts, Pencils, Region, Slabs};

/// How the array is distributed over the PEs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Each PE has planes. There is one exchange.
    Slabs,
    /// The PEs form a grid, and each has rows. There are two exchanges.
    Pencils(Shape),
}

/// The error of an extent that the PEs cannot share evenly.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{parts} PEs cannot share the {extent} points along {dimension} evenly: take a number of PEs, \
     or a grid, that divides it"
)]
pub struct Uneven {
    dimension: char,
    extent: usize,
    parts: usize,
}

/// Checks that `pes` PEs can share the points of a class evenly.
///
/// # Errors
/// [`Uneven`].
pub fn ensure_even(class: &Class, layout: Layout, pes: usize) -> Result<(), Uneven> {
    let [x, y, z] = class.extents;
    let shares = match layout {
        Layout::Slabs => vec![('x', x, pes), ('z', z, pes)],
        Layout::Pencils(Shape { rows, columns }) => {
            vec![('x', x, columns), ('y', y, columns), ('y', y, rows), ('z', z, rows)]
        }
    };
    let is_uneven = |(_, extent, parts): &(_, usize, usize)| !extent.is_multiple_of(*parts);
    shares
        .into_iter()
        .find(is_uneven)
        .map_or(Ok(()), |(dimension, extent, parts)| Err(Uneven { dimension, extent, parts }))
}

/// A PE's part of the benchmark.
pub struct Ft {
    world: Team,
    class: Class,
    layout: Box<dyn Parts>,
}

impl Ft {
    /// Plans the transforms. The PEs must [share](ensure_even) the points evenly. Collective.
    ///
    /// # Errors
    /// See [`Team::cartesian`].
    pub fn new(world: &Team, class: Class, layout: Layout, exchange: Exchange) -> Result<Self> {
        let layout: Box<dyn Parts> = match layout {
            Layout::Slabs => Box::new(Slabs::new(world, class.extents, exchange)),
            Layout::Pencils(shape) => {
                Box::new(Pencils::new(world, shape.rows, class.extents, exchange)?)
            }
        };
        Ok(Self { world: world.clone(), class, layout })
    }

    /// Returns this PE's part of the initial array.
    #[must_use]
    pub fn initial(&self) -> Vec<Complex64> {
        let [extent_x, extent_y, _] = self.class.extents;
        let Region([x, y, z]) = self.layout.space();
        let rows = z.flat_map(|z| y.clone().map(move |y| z * extent_y + y));
        rows.flat_map(|row| {
            let mut numbers = random::numbers(2 * (row * extent_x + x.start) as u64);
            let mut number = move || numbers.next().expect("an endless sequence");
            x.clone().map(move |_| Complex64::new(number(), number()))
        })
        .collect()
    }

    /// Solves the equation for the initial array. Returns the checksum of each iteration.
    /// Collective.
    ///
    /// # Errors
    /// See [`Team`].
    pub fn solve(
        &mut self,
        mut space: Vec<Complex64>,
        recorder: &Recorder,
    ) -> Result<Vec<[f64; 2]>> {
        let mut spectrum = self.layout.forward(&space, recorder)?;
        let region = self.layout.spectrum();
        debug_assert_eq!(spectrum.len(), region.points(), "this PE's points");
        let factors = factors(self.class.extents);
        let mut checksums = Vec::new();
        for _ in self.class.checksums {
            recorder.compute(|| evolve(&mut spectrum, &region, &factors));
            self.layout.inverse(&spectrum, &mut space, recorder)?;
            checksums.push(self.checksum(&space, recorder)?);
        }
        Ok(checksums)
    }

    fn checksum(&self, space: &[Complex64], recorder: &Recorder) -> Result<[f64; 2]> {
        let [extent_x, extent_y, extent_z] = self.class.extents;
        let Region([x, y, z]) = self.layout.space();
        let sum: Complex64 = (1..=1024)
            .map(|j| [j % extent_x, 3 * j % extent_y, 5 * j % extent_z])
            .filter(|[i, j, k]| x.contains(i) && y.contains(j) && z.contains(k))
            .map(|[i, j, k]| space[((k - z.start) * y.len() + j - y.start) * x.len() + i - x.start])
            .sum();
        let sum = recorder.communicate(|| self.world.all_reduce([sum.re, sum.im], Sum))?;
        Ok(sum.map(|part| part / self.class.points() as f64))
    }
}

/// Returns the factors by which an iteration multiplies the transformed array, for each dimension.
/// An element is multiplied by the product of its three factors, exp(-4 alpha pi^2 (i^2 + j^2 +
/// k^2)). The wave numbers i, j and k start at minus half the extent.
fn factors(extents: [usize; 3]) -> [Vec<f64>; 3] {
    const ALPHA: f64 = 1e-6;
    extents.map(|extent| {
        let wave = |at| if at < extent / 2 { at as f64 } else { at as f64 - extent as f64 };
        (0..extent).map(|at| (-4.0 * ALPHA * PI * PI * wave(at) * wave(at)).exp()).collect()
    })
}

fn evolve(spectrum: &mut [Complex64], Region([x, y, z]): &Region, factors: &[Vec<f64>; 3]) {
    let [along_x, along_y, along_z] = factors;
    let mut rows = spectrum.chunks_exact_mut(z.len());
    for along_x in &along_x[x.clone()] {
        for (along_y, row) in along_y[y.clone()].iter().zip(&mut rows) {
            for (element, along_z) in row.iter_mut().zip(along_z) {
                *element *= along_x * along_y * along_z;
            }
        }
    }
}
