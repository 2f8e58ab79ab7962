//! Pipelined broadcast down a k-ary tree, in chunks.
//!
//! Idea: a PE passes chunk `i` on while chunk `i + 1` comes in, so that all levels of the tree work
//! at once; two buffers an edge. Source: Nishtala and Yelick 2009, section 3 (pipelining); Petrović
//! 2015, chapter 4 (k-ary tree, chunks, double buffering). Messages and their protocol are those of
//! all trees (`lines`).
//!
//! Cost: the tree's depth of chunks to fill the pipeline, then `k` times the message.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query};

use super::lines::{self, Schedule};
use crate::{Algorithm, Direction, Parameter, PlanError, Setting, patterns::tree::Shape};

/// See the head of this file.
#[derive(Debug)]
pub struct Pipelined;

impl Algorithm for Pipelined {
    const NAME: &'static str = "pipelined";
    const DIRECTION: Direction = Direction::Down;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "chunk_bytes", values: &[1024, 2048, 4096, 7056], range: (1, 1 << 30) },
        Parameter { name: "radix", values: &[1, 2, 4], range: (1, 1 << 16) },
    ];
    type Schedule = Schedule;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<Schedule, PlanError> {
        Self::check_names(candidate)?;
        let chunk_bytes = Self::parameter(candidate, 0)?;
        let radix = u32::try_from(Self::parameter(candidate, 1)?).unwrap_or(u32::MAX);
        let (shape, chunk_bytes) =
            (Shape::Kary(radix), usize::try_from(chunk_bytes).unwrap_or(usize::MAX));
        Schedule::new(setting, shape, chunk_bytes).ok_or(Self::incapable("the inbox is too small"))
    }

    fn steps(schedule: &Schedule) -> u64 {
        schedule.steps()
    }

    fn cost_ns(query: &Query, candidate: &Candidate, model: &MachineModel) -> f64 {
        let radix = candidate.parameter("radix").and_then(|radix| u32::try_from(radix).ok());
        let chunk_bytes =
            candidate.parameter("chunk_bytes").and_then(|bytes| usize::try_from(bytes).ok());
        lines::cost_ns(Shape::Kary(radix.unwrap_or(2)), chunk_bytes.unwrap_or(4096), query, model)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, schedule: &Schedule) -> impl Future<Output = Op> {
        lines::run(f, schedule)
    }
}
