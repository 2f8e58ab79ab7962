//! The registry of vector all-to-alls (MPI's all-to-allv): blocks of any length from every PE to
//! every PE.

use crate::algorithm::registry;

registry! {
    direct: Direct,
    two_phase_bruck: TwoPhaseBruck,
}
