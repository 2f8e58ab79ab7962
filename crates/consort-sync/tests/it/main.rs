//! Tests of locks and delegation on this machine, one module a subject.
#![cfg(not(loom))]

mod delegation;
mod locks;
mod objects;
