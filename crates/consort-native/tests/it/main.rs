//! Tests of the native machine and fabric, one module a subject.

use consort_sandbox as _;

mod machine;
