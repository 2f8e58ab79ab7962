//! Ground floor of Consort: ranks, modes, the fabric and machine interfaces, kernels, costs.
