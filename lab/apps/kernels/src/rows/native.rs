//! Transforms in Rust, with the crate `rustfft`.

use std::sync::Arc;

use num_complex::Complex64;
use rustfft::{Fft, FftPlanner};

use super::{Direction, Rows};

pub(super) struct Plan {
    fft: Arc<dyn Fft<f64>>,
    scratch: Vec<Complex64>,
}

impl Plan {
    pub(super) fn new(len: usize, direction: Direction) -> Self {
        let mut planner = FftPlanner::new();
        let fft = match direction {
            Direction::Forward => planner.plan_fft_forward(len),
            Direction::Inverse => planner.plan_fft_inverse(len),
        };
        let scratch = vec![Complex64::ZERO; fft.get_inplace_scratch_len()];
        Self { fft, scratch }
    }
}

impl Rows for Plan {
    fn transform(&mut self, data: &mut [Complex64]) {
        self.fft.process_with_scratch(data, &mut self.scratch);
    }
}
