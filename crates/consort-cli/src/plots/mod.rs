//! Plots of reports: `figures` of collectives and other figures, `sections` of locks and delegation.

pub(crate) mod figures;
pub(crate) mod sections;
