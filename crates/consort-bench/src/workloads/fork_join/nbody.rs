//! Gravity between 128 bodies: two regions an iteration, one for the accelerations, which need all
//! positions, and one that moves the bodies.
//!
//! The leapfrog method (Verlet 1967) keeps the total energy within a narrow band. A body's
//! acceleration is summed in the order of the other bodies, so the results do not depend on the
//! number of threads.

use anyhow::Result;

use super::parts::{RegionProgram, each_part};
use crate::{peers::fork_join::ForkJoin, rng::Rng};

const BODIES: usize = 128;
/// The time step, in units in which the total mass, the gravitational constant and the size of the
/// cloud are about 1.
const STEP: f64 = 1e-4;
/// Softens close encounters, squared.
const SOFTENING: f64 = 1e-3;
const MASS: f64 = 1.0 / BODIES as f64;

type Vector = [f64; 3];

#[derive(Clone, Copy)]
struct Body {
    position: Vector,
    velocity: Vector,
}

/// The bodies, and their accelerations in the current iteration.
pub(super) struct Nbody {
    bodies: Vec<Body>,
    accelerations: Vec<Vector>,
}

impl Nbody {
    pub(super) fn new() -> Self {
        let mut rng = Rng(128);
        let mut unit = || rng.below(1 << 32) as f64 / f64::from(u32::MAX) - 0.5;
        let mut vector = |scale: f64| [unit() * scale, unit() * scale, unit() * scale];
        let body = |_| Body { position: vector(2.0), velocity: vector(0.5) };
        let bodies = (0..BODIES).map(body).collect();
        Self { bodies, accelerations: vec![[0.0; 3]; BODIES] }
    }
}

fn acceleration(bodies: &[Body], at: &Vector) -> Vector {
    let mut sum = [0.0; 3];
    for other in bodies {
        let distance: Vector = std::array::from_fn(|axis| other.position[axis] - at[axis]);
        let square = distance.iter().map(|it| it * it).sum::<f64>() + SOFTENING;
        let factor = MASS / (square * square.sqrt());
        sum.iter_mut().zip(distance).for_each(|(sum, distance)| *sum += factor * distance);
    }
    sum
}

impl RegionProgram for Nbody {
    fn iterate(&mut self, threads: &mut dyn ForkJoin) -> Result<()> {
        let Self { bodies, accelerations } = self;
        each_part(threads, accelerations, |first, part| {
            for (body, place) in bodies[first..].iter().zip(part) {
                *place = acceleration(bodies, &body.position);
            }
        })?;
        each_part(threads, bodies, |first, part| {
            for (body, acceleration) in part.iter_mut().zip(&accelerations[first..]) {
                let Body { position, velocity } = body;
                for ((position, velocity), change) in
                    position.iter_mut().zip(velocity).zip(acceleration)
                {
                    *velocity += change * STEP;
                    *position += *velocity * STEP;
                }
            }
        })
    }

    fn results(&self) -> Vec<u64> {
        let of = |body: &Body| [body.position, body.velocity].concat();
        self.bodies.iter().flat_map(of).map(f64::to_bits).collect()
    }

    fn restart(&mut self) {
        *self = Self::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::fork_join::serial;

    fn energy(bodies: &[Body]) -> f64 {
        let square = |it: &Vector| it.iter().map(|it| it * it).sum::<f64>();
        let kinetic: f64 = bodies.iter().map(|body| MASS * square(&body.velocity) / 2.0).sum();
        let mut potential = 0.0;
        for (index, one) in bodies.iter().enumerate() {
            for other in &bodies[index + 1..] {
                let distance =
                    std::array::from_fn(|axis| one.position[axis] - other.position[axis]);
                potential -= MASS * MASS / (square(&distance) + SOFTENING).sqrt();
            }
        }
        kinetic + potential
    }

    #[test]
    fn bodies_keep_their_energy() {
        let mut nbody = Nbody::new();
        let before = energy(&nbody.bodies);
        let first = nbody.results();
        for _ in 0..1000 {
            nbody.iterate(&mut *serial()).unwrap();
        }
        let after = energy(&nbody.bodies);
        assert!((after / before - 1.0).abs() < 1e-4, "{before} became {after}");
        assert_ne!(nbody.results(), first, "the bodies move");
    }
}
