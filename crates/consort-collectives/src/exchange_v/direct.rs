//! Direct varied exchange: everyone copies everyone's piece for it from where it lies.
//!
//! Idea: between threads a piece needs no copy in between: the rendezvous get of the GASNet
//! collectives (Nishtala and Yelick 2009, section 2), from everyone, a loan a piece.
//!
//! Protocol (`patterns/pieces`):
//! 1. everyone lends everyone its piece, and copies its own;
//! 2. each gets the others' pieces, from the PE after it on, so that no two read one PE at a time;
//! 3. each leaves when all that it lent is back.
//!
//! Cost: `P - 1` copies a PE, two transfers, `P (P - 1)` loans.

use std::future::Future;

use consort_fabric::{Candidate, Fabric, MachineModel, Op, Query};

use crate::{Algorithm, Parameter, PlanError, Setting, patterns::pieces};

/// See the head of this file.
#[derive(Debug)]
pub struct Direct;

impl Algorithm for Direct {
    const NAME: &'static str = "direct";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = ();

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<(), PlanError> {
        Self::check_names(candidate)?;
        if pieces::serves(&setting.capabilities) {
            Ok(())
        } else {
            Err(Self::incapable("the fabric cannot lend buffers"))
        }
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        pieces::cost_ns(query, f64::from(query.pes) - 1.0, model)
    }

    #[inline(always)]
    fn run<F: Fabric>(f: &F, (): &()) -> impl Future<Output = Op> {
        pieces::all_to_all(f)
    }
}
