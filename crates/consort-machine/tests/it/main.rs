//! The native machine, tested from the outside.

use consort_sandbox as _;

mod machine;
