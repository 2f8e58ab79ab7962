//! Tests of the native machine and fabric, one module a subject.

mod machine;
