//! Calls that combine short floats, whose partial results are `f32`.
//!
//! With two PEs, a result is combined from two elements, and the operator itself rounds it once.
//! With more, each PE widens its elements, the call combines numbers of `f32`, and each PE rounds
//! its results.

use consort_fabric::{Collective, Kernel, Pod, Product, Sum, Wide, WideOperator};
use consort_native::Buffer;

use super::verb::Verb;
use crate::{
    Team,
    runtime::dispatch::{Combination, Combining},
};

/// How a call widens the elements of this PE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Widening {
    wide: &'static Wide,
    operator: &'static str,
    /// Whether this PE gets a result.
    receives: bool,
}

impl Widening {
    /// Returns how a call widens elements; `None` if its partial results are elements.
    #[inline(always)]
    pub(crate) fn of(team: &Team, verb: &Verb<'_>, combination: Combination<'_>) -> Option<Self> {
        let Combining { wide, name: operator, .. } = combination?;
        let wide = wide.filter(|_| team.size() > 2)?;
        let receives = match verb.collective {
            Collective::Reduce | Collective::ExclusiveScan => verb.is_among_some(team),
            _ => true,
        };
        Some(Self { wide, operator, receives })
    }

    /// Returns the operator on `f32`.
    pub(crate) fn kernel(&self) -> Kernel<'static> {
        match self.wide.operator() {
            WideOperator::Sum => Kernel::new::<f32, _>(&Sum),
            WideOperator::Product => Kernel::new::<f32, _>(&Product),
        }
    }

    /// As [`Widening::kernel`], with the operator's name.
    pub(crate) fn combination(&self) -> Combination<'static> {
        Some(Combining { kernel: self.kernel(), name: self.operator, wide: None })
    }

    /// Returns the numbers in `len` elements of `T`, which is a short float or an array of them.
    pub(crate) fn numbers<T: Pod>(len: usize) -> usize {
        len * (size_of::<T>() / Wide::NARROW_BYTES)
    }

    /// Returns a target for `len` results.
    pub(crate) fn blank<T: Pod>(len: usize) -> Vec<f32> {
        vec![0.0; Self::numbers::<T>(len)]
    }

    /// As [`Widening::blank`], for the results in symmetric memory.
    pub(crate) fn blank_in(elements: &Buffer<'_>) -> Vec<f32> {
        vec![0.0; elements.byte_len() / Wide::NARROW_BYTES]
    }

    pub(crate) fn widen<T: Pod>(&self, elements: &[T]) -> Vec<f32> {
        self.wide.widen(bytemuck::cast_slice(elements))
    }

    /// As [`Widening::widen`], in symmetric memory.
    pub(crate) fn widen_in(&self, elements: &Buffer<'_>) -> Vec<f32> {
        self.wide.widen(&elements.to_vec())
    }

    /// Writes this PE's results.
    pub(crate) fn narrow<T: Pod>(&self, results: &[f32], elements: &mut [T]) {
        if self.receives {
            self.wide.narrow(results, bytemuck::cast_slice_mut(elements));
        }
    }

    /// As [`Widening::narrow`], in symmetric memory.
    pub(crate) fn narrow_in(&self, results: &[f32], elements: &mut Buffer<'_>) {
        if self.receives {
            let mut bytes = vec![0; results.len() * Wide::NARROW_BYTES];
            self.wide.narrow(results, &mut bytes);
            elements.copy_from(&bytes);
        }
    }
}
