//! The native machine, from the outside.

use consort_sandbox as _;

mod machine;
