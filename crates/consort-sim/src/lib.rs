//! Simulated machines: the algorithms of Consort in virtual time, and models in closed form.

pub mod analytic;
pub mod machines;
