//! Tests of the public interface, one module a subject.
