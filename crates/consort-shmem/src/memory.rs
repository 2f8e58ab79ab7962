//! The symmetric heap, and addresses in it.

use std::{
    ffi::{c_long, c_void},
    ptr::{null_mut, with_exposed_provenance_mut},
    sync::atomic::{AtomicBool, Ordering::Relaxed},
};

use consort::ops::Min;
use consort_native::heap_bytes_of;
use libc::c_int;

use crate::{
    collectives::{TeamCall, synchronize},
    environment::SYMMETRIC_SIZE,
    failure::{fail, warn},
    rma::copy,
    teams::{Members, Team},
    world::{World, world},
};

/// Allocates memory, zeroed if `cleared`. Returns null for 0 bytes, or if there is not enough
/// memory.
fn allocate(routine: &'static str, bytes: usize, align: usize, cleared: bool) -> *mut c_void {
    let world = world(routine);
    if bytes == 0 {
        return null_mut();
    }
    let taken = world.allocator().take(bytes, align);
    match taken {
        Some(at) => world.job.put_in_cores(world.rank, at..at + bytes),
        None => warn_of_full_heap(routine, world, bytes),
    }
    let address: *mut c_void =
        taken.map_or(null_mut(), |at| with_exposed_provenance_mut(world.heap + at));
    if cleared && !address.is_null() {
        // SAFETY: this PE's part of what was just allocated.
        unsafe { address.cast::<u8>().write_bytes(0, bytes) };
    }
    if taken.is_some() {
        synchronize_on(routine, [("size", bytes), ("alignment", align)]);
    }
    address
}

/// The argument `ptr`, whose addresses may differ between PEs.
const OFFSET: &str = "ptr, as an offset in the heap,";

/// Synchronizes all PEs. If expensive checks are enabled, fails unless all pass the same arguments.
fn synchronize_on(routine: &'static str, arguments: [(&str, usize); 2]) {
    synchronize(routine);
    if !world(routine).environment.debug {
        return;
    }
    let Some(call) = TeamCall::new(routine, Team::WORLD) else { return };
    let own = arguments.map(|(_, value)| value as u64);
    let all = call.make(|team| team.all_gather(own), |team| team.start(vec![own]).all_gather());
    let Some(pe) = all.iter().position(|values| *values != own) else { return };
    let differs = |at: &usize| all[pe][*at] != own[*at];
    let at = (0..own.len()).find(differs).unwrap_or(0);
    let ((name, value), other) = (arguments[at], all[pe][at]);
    fail(
        routine,
        format_args!("argument {name} is {value}, but PE {pe} passed {other}: all PEs must agree"),
    )
}

/// Warns once, on PE 0, that an allocation returns null because the heap is full.
#[cold]
fn warn_of_full_heap(routine: &str, world: &World, bytes: usize) {
    static HAS_WARNED: AtomicBool = AtomicBool::new(false);
    if world.rank.0 != 0 || HAS_WARNED.swap(true, Relaxed) {
        return;
    }
    let (heap, taken) = (world.heap_bytes, world.allocator().taken());
    let remedy = remedy(heap.saturating_add(bytes));
    warn(format_args!(
        "{routine} returns null: {bytes} bytes do not fit the symmetric heap, where {taken} of \
         {heap} bytes are in use: {remedy}"
    ));
}

/// Returns advice for a program that needs a heap of `bytes` bytes.
fn remedy(bytes: usize) -> String {
    let bytes = bytes.checked_next_power_of_two().unwrap_or(usize::MAX);
    match heap_bytes_of(SYMMETRIC_SIZE, &bytes.to_string()) {
        Ok(_) => format!("set {SYMMETRIC_SIZE}={bytes}"),
        Err(_) => "this machine does not have that much memory, so check the size".to_owned(),
    }
}

/// `shmem_malloc`.
pub fn malloc(size: usize) -> *mut c_void {
    allocate("shmem_malloc", size, 1, false)
}

/// `shmem_calloc`.
pub fn calloc(count: usize, size: usize) -> *mut c_void {
    let bytes = count.checked_mul(size);
    bytes.map_or(null_mut(), |bytes| allocate("shmem_calloc", bytes, 1, true))
}

/// The minimum alignment of every heap: a large page.
const LEAST_ALIGNMENT: usize = 2 << 20;

/// Returns the alignment that heaps of `heap_bytes` bytes get if every PE has room for it in its
/// address space: the largest power of two that an allocation could request.
pub(crate) fn preferred_alignment(heap_bytes: usize) -> usize {
    (1 << heap_bytes.max(1).ilog2()).max(LEAST_ALIGNMENT)
}

/// Returns the smallest alignment of any PE's heap. All PEs call it.
fn alignment_of_all(routine: &'static str, world: &World) -> u64 {
    let own = 1_u64 << world.heap.trailing_zeros();
    let Some(call) = TeamCall::new(routine, Team::WORLD) else { return own };
    if call.takes_turns() {
        call.by_turns(|team| team.start(vec![own]).all_reduce(Min))[0]
    } else {
        call.blocking(|team| team.all_reduce(own, Min))
    }
}

/// `shmem_align`. Returns null if the alignment is not a power of two, if it is larger than the
/// symmetric heap, or if a PE had no room in its address space for a heap of this alignment.
pub fn align(alignment: usize, size: usize) -> *mut c_void {
    const ROUTINE: &str = "shmem_align";
    let world = world(ROUTINE);
    if !alignment.is_power_of_two() {
        return null_mut();
    }
    if alignment > LEAST_ALIGNMENT {
        let least = alignment_of_all(ROUTINE, world);
        if alignment as u64 > least {
            let remedy = if alignment > world.heap_bytes {
                remedy(alignment)
            } else {
                "raise the limit of address space (`ulimit -v`)".to_owned()
            };
            if world.rank.0 == 0 {
                warn(format_args!(
                    "{ROUTINE} returns null: the symmetric heaps are aligned to {least} bytes, not \
                     to {alignment}: {remedy}"
                ));
            }
            return null_mut();
        }
    }
    allocate(ROUTINE, size, alignment, false)
}

/// `shmem_malloc_with_hints`. Hints have no effect, known or not.
pub fn malloc_with_hints(size: usize, _hints: c_long) -> *mut c_void {
    allocate("shmem_malloc_with_hints", size, 1, false)
}

fn offset_of(world: &World, routine: &str, ptr: *mut c_void) -> usize {
    let at = ptr.addr().wrapping_sub(world.heap);
    if world.allocator().size(at).is_none() {
        let address = ptr.addr();
        let what = "was not allocated in the symmetric heap, or is free already";
        fail(routine, format_args!("argument ptr is {address:#x}, which {what}"));
    }
    at
}

/// Frees an allocation that no peer accesses any more.
fn give(world: &World, at: usize) {
    let mut allocator = world.allocator();
    allocator.give(at);
    let gap = allocator.gap(at);
    drop(allocator);
    world.job.keep_out_of_cores(world.rank, gap);
}

/// `shmem_free`.
pub fn free(ptr: *mut c_void) {
    let world = world("shmem_free");
    if ptr.is_null() {
        return;
    }
    let at = offset_of(world, "shmem_free", ptr);
    // Peers may access the allocation until they have arrived.
    synchronize_on("shmem_free", [(OFFSET, at), (OFFSET, at)]);
    give(world, at);
}

/// `shmem_realloc`. Returns null if there is not enough memory; the allocation then stays as it is.
pub fn realloc(ptr: *mut c_void, size: usize) -> *mut c_void {
    let routine = "shmem_realloc";
    let world = world(routine);
    if ptr.is_null() {
        return allocate(routine, size, 1, false);
    }
    let at = offset_of(world, routine, ptr);
    synchronize_on(routine, [(OFFSET, at), ("size", size)]);
    if size == 0 {
        give(world, at);
        return null_mut();
    }
    let mut allocator = world.allocator();
    let before = allocator.size(at).unwrap_or(0);
    if allocator.resize(at, size) {
        drop(allocator);
        world.job.put_in_cores(world.rank, at..at + size);
        synchronize(routine);
        return ptr;
    }
    let taken = allocator.take(size, 1);
    drop(allocator);
    let Some(new) = taken else {
        warn_of_full_heap(routine, world, size);
        return null_mut();
    };
    world.job.put_in_cores(world.rank, new..new + size);
    let target: *mut u8 = with_exposed_provenance_mut(world.heap + new);
    // SAFETY: two allocations of this PE's heap, of at least this many bytes.
    unsafe { copy(routine, target, ptr.cast_const().cast(), before.min(size)) };
    synchronize(routine);
    give(world, at);
    target.cast()
}

/// `shmem_ptr`: null if the address is not symmetric, or the PE is far.
pub fn ptr(dest: *const c_void, pe: c_int) -> *mut c_void {
    let world = world("shmem_ptr");
    let pe = world.pe("shmem_ptr", pe);
    world.address(dest.expose_provenance(), 1, pe).map_or(null_mut(), <*mut u8>::cast)
}

/// `shmem_team_ptr`: null if the address is not symmetric, the PE is far, or there is no such team.
pub fn team_ptr(team: Team, dest: *const c_void, pe: c_int) -> *mut c_void {
    let world = world("shmem_team_ptr");
    if team == Team::INVALID {
        return null_mut();
    }
    let members = Members::of("shmem_team_ptr", team);
    let Some(pe) = members.world_rank(pe) else {
        crate::world::no_pe("shmem_team_ptr", pe, members.size())
    };
    world.address(dest.expose_provenance(), 1, pe).map_or(null_mut(), <*mut u8>::cast)
}

/// `shmem_addr_accessible`.
pub fn addr_accessible(addr: *const c_void, pe: c_int) -> c_int {
    let world = world("shmem_addr_accessible");
    let pe = world.pe("shmem_addr_accessible", pe);
    let address = addr.expose_provenance();
    let is_reached = world.offset_of(address, 1).is_some();
    c_int::from(is_reached || world.address(address, 1, pe).is_some())
}

/// `shmem_pe_accessible`.
pub fn pe_accessible(pe: c_int) -> c_int {
    let world = world("shmem_pe_accessible");
    c_int::from(u32::try_from(pe).is_ok_and(|pe| pe < world.pes))
}
