//! Collective routines of teams that move data.

use libc::{c_int, ptrdiff_t};

use super::{rma_types, routine};
use crate::{collectives, teams::Team};

macro_rules! moves {
    ($t:ty, ($($before:literal),*), ($($after:literal),*)) => {
        routine!(($($before,)* "broadcast" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize, root: c_int) -> c_int =>
            collectives::broadcast(team, dest, source, nelems, root));
        routine!(($($before,)* "collect" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize) -> c_int =>
            collectives::collect(team, dest, source, nelems));
        routine!(($($before,)* "fcollect" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize) -> c_int =>
            collectives::fcollect(team, dest, source, nelems));
        routine!(($($before,)* "alltoall" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, nelems: usize) -> c_int =>
            collectives::alltoall(team, dest, source, nelems));
        routine!(($($before,)* "alltoalls" $(, $after)*)
            (team: Team, dest: *mut $t, source: *const $t, dst: ptrdiff_t, sst: ptrdiff_t,
             nelems: usize) -> c_int =>
            collectives::alltoalls(team, dest, source, dst, sst, nelems));
    };
}

macro_rules! typed {
    ($name:literal, $t:ty) => {
        moves!($t, ($name, "_"), ());
    };
}

rma_types!(typed);
moves!(u8, (), ("mem"));

routine!(("barrier_all") () => collectives::barrier_all());
routine!(("sync_all") () => collectives::sync_all());
routine!(("team_sync") (team: Team) -> c_int => collectives::team_sync(team));
