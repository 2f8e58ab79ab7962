//! Collective routines on active sets, which are deprecated.

use libc::{c_int, c_long, ptrdiff_t};

use super::{each, routine};
use crate::active_sets;

macro_rules! moves {
    ($size:literal, $t:ty) => {
        routine!(("broadcast", $size)
            (dest: *mut $t, source: *const $t, nelems: usize, root: c_int, start: c_int,
             log_stride: c_int, size: c_int, _sync: *mut c_long) =>
            active_sets::broadcast(
                dest, source, nelems, root, (start, log_stride, size)));
        routine!(("collect", $size)
            (dest: *mut $t, source: *const $t, nelems: usize, start: c_int, log_stride: c_int,
             size: c_int, _sync: *mut c_long) =>
            active_sets::collect(dest, source, nelems, (start, log_stride, size)));
        routine!(("fcollect", $size)
            (dest: *mut $t, source: *const $t, nelems: usize, start: c_int, log_stride: c_int,
             size: c_int, _sync: *mut c_long) =>
            active_sets::fcollect(dest, source, nelems, (start, log_stride, size)));
        routine!(("alltoall", $size)
            (dest: *mut $t, source: *const $t, nelems: usize, start: c_int, log_stride: c_int,
             size: c_int, _sync: *mut c_long) =>
            active_sets::alltoall(dest, source, nelems, (start, log_stride, size)));
        routine!(("alltoalls", $size)
            (dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t, nelems: usize,
             start: c_int, log_stride: c_int, size: c_int, _sync: *mut c_long) =>
            active_sets::alltoalls(
                dest, source, dst, sst, nelems, (start, log_stride, size)));
    };
}

each!(moves: "32" u32, "64" u64,);
routine!(("barrier") (start: c_int, log_stride: c_int, size: c_int, _sync: *mut c_long) =>
    active_sets::barrier((start, log_stride, size)));
routine!(("sync") (start: c_int, log_stride: c_int, size: c_int, _sync: *mut c_long) =>
    active_sets::sync((start, log_stride, size)));
