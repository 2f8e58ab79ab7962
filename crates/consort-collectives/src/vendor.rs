//! A collective that the fabric provides: in hardware, or in a vendor's library.
//!
//! Idea: such a collective may use knowledge that this library lacks, such as trees in the network.
//! It is a candidate like any other, and tuning selects it if it is faster (the hardware
//! collectives of Nishtala, Zheng, Hargrove and Yelick 2011, sections 3.5 and 3.6). On a fabric
//! over MPI it is the MPI library's collective.
//!
//! Protocol: one call on the callers' buffers. The vendor's library must have the elements and the
//! operator, and the fabric must have collectives among these PEs; in two levels they may be the
//! leaders of the nodes.
//!
//! Cost: unknown. The model assumes twice the cost of a good algorithm, so only a measurement
//! selects this one.

use consort_fabric::{
    CallSpec, Candidate, Fabric, MachineModel, Op, Query, Span, VendorCall, readable_type,
};

use crate::{Algorithm, Parameter, PlanError, Setting};

/// See the module documentation.
#[derive(Hash)]
pub struct Vendor;

impl Algorithm for Vendor {
    const NAME: &'static str = "vendor";
    const PARAMETERS: &'static [Parameter] = &[];
    type Schedule = VendorCall;

    fn schedule(setting: &Setting, candidate: &Candidate) -> Result<VendorCall, PlanError> {
        Self::check_names(candidate)?;
        let CallSpec { collective, pes, root, bytes, datatype, operator, .. } = setting.call;
        if !setting.capabilities.vendor.team {
            return Err(Self::incapable("the fabric provides no collectives for these PEs"));
        }
        if setting.call.nonblocking {
            return Err(Self::incapable("other calls may overtake it"));
        }
        if i32::try_from(bytes.saturating_mul(pes as usize)).is_err() {
            return Err(Self::incapable("libraries count up to 2^31 - 1"));
        }
        if collective.combines() && !VendorCall::combines(datatype, operator) {
            let datatype = readable_type(datatype);
            let why = format!("libraries do not combine {datatype} by {operator} as this one does");
            return Err(Self::incapable(why));
        }
        let is_root = setting.rank == root;
        let blocks = |count: u32| count as usize * bytes;
        let source = Span::source(0, blocks(collective.source_blocks(pes, is_root)));
        let target = Span::target(0, blocks(collective.target_blocks(pes, is_root)));
        Ok(VendorCall {
            collective,
            leaders: false,
            root,
            source,
            target,
            bytes,
            datatype,
            operator,
        })
    }

    fn cost_ns(query: &Query, _: &Candidate, model: &MachineModel) -> f64 {
        let hops = f64::from(query.pes.max(2)).log2().ceil();
        let data = query.bytes as f64 / model.pull_gbps;
        2.0 * (model.hops_ns(hops, query.pes) + data * hops)
    }

    #[inline(always)]
    async fn run<F: Fabric>(f: &F, call: &VendorCall) -> Op {
        f.vendor(*call).await
    }
}
