//! Strided puts and gets, of elements and of blocks.

use consort::Rank;
use libc::{c_int, ptrdiff_t};

use crate::{
    contexts::Context,
    elements::Element,
    failure::fail,
    rma::{bytes_of, copy},
    world::{Location, World, world},
};

/// Returns the number of elements from the first to the end of the last block. Fails if the strides
/// are wrong.
fn extent(routine: &str, argument: &str, stride: ptrdiff_t, block: usize, blocks: usize) -> usize {
    if block == 0 || blocks == 0 {
        return 0;
    }
    let step = usize::try_from(stride).ok().filter(|&step| step >= block);
    let Some(step) = step else {
        fail(routine, format_args!("argument {argument} is {stride}, expected at least {block}"))
    };
    (blocks - 1).saturating_mul(step).saturating_add(block)
}

/// `shmem_ibput`, and `shmem_iput` with blocks of one element: puts blocks whose first elements are
/// `dst` and `sst` elements apart. `routine` is its name.
///
/// # Safety
/// `source` is readable for the elements.
pub unsafe fn put<T: Element>(
    routine: &str,
    context: Context,
    dest: *mut T,
    source: *const T,
    (dst, sst): (ptrdiff_t, ptrdiff_t),
    (block, blocks): (usize, usize),
    pe: c_int,
) {
    let world = world(routine);
    let pe = context.pe(world, routine, pe);
    let elements = extent(routine, "dst", dst, block, blocks);
    extent(routine, "sst", sst, block, blocks);
    match world.locate(routine, ("dest", dest), bytes_of::<T>(elements), pe) {
        Location::Near(target) => {
            // SAFETY: the target lies in symmetric memory; the caller guarantees the source.
            unsafe { move_blocks(routine, target.cast(), source, (dst, sst), (block, blocks)) };
            world.one_sided().wake(pe);
        }
        Location::Far(at) => {
            let sources = addresses(source.cast_mut(), sst);
            for (at, source) in offsets::<T>(at, dst).zip(sources).take(blocks) {
                // SAFETY: guaranteed by the caller.
                unsafe { world.one_sided().put_bytes(pe, at, source, bytes_of::<T>(block)) };
            }
        }
    }
}

/// `shmem_ibget`, and `shmem_iget` with blocks of one element.
///
/// # Safety
/// `dest` is writable for the elements.
pub unsafe fn get<T: Element>(
    routine: &str,
    context: Context,
    dest: *mut T,
    source: *const T,
    (dst, sst): (ptrdiff_t, ptrdiff_t),
    (block, blocks): (usize, usize),
    pe: c_int,
) {
    let world = world(routine);
    let pe = context.pe(world, routine, pe);
    extent(routine, "dst", dst, block, blocks);
    let elements = extent(routine, "sst", sst, block, blocks);
    let place = world.locate(routine, ("source", source), bytes_of::<T>(elements), pe);
    // SAFETY: the source lies in symmetric memory; the caller guarantees the target.
    unsafe { get_blocks((routine, world), dest, (pe, place), (dst, sst), (block, blocks)) };
}

/// Gets blocks, whose strides have been checked, from a place of a PE.
///
/// # Safety
/// All blocks are readable and writable.
pub(crate) unsafe fn get_blocks<T>(
    (routine, world): (&str, &World),
    target: *mut T,
    (pe, source): (Rank, Location),
    (dst, sst): (ptrdiff_t, ptrdiff_t),
    (block, blocks): (usize, usize),
) {
    match source {
        Location::Near(source) => {
            let source = source.cast::<T>().cast_const();
            // SAFETY: guaranteed by the caller.
            unsafe { move_blocks(routine, target, source, (dst, sst), (block, blocks)) };
        }
        Location::Far(at) => {
            let blocks = offsets::<T>(at, sst).zip(addresses(target, dst)).take(blocks);
            // SAFETY: as above.
            unsafe { world.one_sided().get_blocks(pe, blocks, bytes_of::<T>(block)) };
        }
    }
}

/// Returns addresses this many elements apart.
fn addresses<T>(first: *mut T, stride: ptrdiff_t) -> impl Iterator<Item = *mut u8> {
    let next = move |last: &*mut T| Some(last.wrapping_offset(stride));
    std::iter::successors(Some(first), next).map(<*mut T>::cast)
}

/// Returns offsets this many elements apart, beginning with the first.
fn offsets<T>(first: usize, stride: ptrdiff_t) -> impl Iterator<Item = usize> {
    let bytes = stride.unsigned_abs().saturating_mul(size_of::<T>());
    std::iter::successors(Some(first), move |last| Some(last.wrapping_add(bytes)))
}

/// Copies blocks, whose strides have been checked.
///
/// # Safety
/// All blocks are readable and writable.
unsafe fn move_blocks<T>(
    routine: &str,
    mut target: *mut T,
    mut source: *const T,
    (dst, sst): (ptrdiff_t, ptrdiff_t),
    (block, blocks): (usize, usize),
) {
    for _ in 0..blocks {
        // SAFETY: guaranteed by the caller.
        unsafe { copy(routine, target.cast(), source.cast(), bytes_of::<T>(block)) };
        target = target.wrapping_offset(dst);
        source = source.wrapping_offset(sst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The heap may end right behind the last block.
    #[test]
    fn extent_ends_with_the_last_element_of_the_last_block() {
        assert_eq!(extent("", "dst", 3, 1, 3), 7);
        assert_eq!(extent("", "dst", 4, 2, 2), 6);
        assert_eq!(extent("", "dst", 1, 1, 5), 5);
        assert_eq!(extent("", "dst", 0, 2, 0), 0);
    }

    #[test]
    fn offsets_of_far_blocks_count_elements() {
        assert!(offsets::<u8>(10, 3).take(3).eq([10, 13, 16]));
        assert!(offsets::<i64>(8, 2).take(3).eq([8, 24, 40]));
    }
}
