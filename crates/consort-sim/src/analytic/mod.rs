//! Models in closed form, for any parameters: what a simulation is compared with.
