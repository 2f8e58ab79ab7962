//! Tests of copies and combinations, and of the misuse that they reject.

#![expect(unsafe_code, reason = "copies between raw addresses")]

use std::cmp::Ordering;

use consort_fabric::{Kernel, Max, Min, Operator, OperatorClass, Pod, Product, Sum, splitmix64};

use super::{
    copy::{copy_past_caches, copy_shared},
    extent::SharedExtent,
    region::Memory,
};

/// Mistakes that a (safe) algorithm can make: they panic.
mod lengths_that_differ {
    use super::*;

    /// Returns parts of one allocation of 256 bytes, shared or private.
    fn parts<const N: usize>(is_shared: bool, spans: [(usize, usize); N]) -> [Memory; N] {
        let memory = Box::leak(Box::new([0_u64; 32])).as_mut_ptr().cast::<u8>();
        let shared = is_shared.then_some(SharedExtent::WORDS);
        spans.map(|(at, bytes)| Memory { at: memory.wrapping_add(at), bytes, shared })
    }

    fn combine(is_shared: bool, spans: [(usize, usize); 3]) {
        let [target, left, right] = parts(is_shared, spans);
        target.combine(&Kernel::new::<u64, _>(&Sum), left, right);
    }

    #[test]
    #[should_panic(expected = "a copy is as long as what is copied")]
    fn copy_of_another_length_panics() {
        let [target, source] = parts(false, [(0, 16), (64, 24)]);
        target.copy_from(source);
    }

    #[test]
    #[should_panic(expected = "a copy is as long as what is copied")]
    fn staged_copy_of_another_length_panics() {
        let [target, source] = parts(true, [(0, 1 << 20), (64, 24)]);
        target.stage_from(source);
    }

    #[test]
    #[should_panic(expected = "what others reach is not copied over itself")]
    fn overlapping_staged_copy_panics() {
        let [target, source] = parts(true, [(0, 1 << 20), (1 << 19, 1 << 20)]);
        target.stage_from(source);
    }

    #[test]
    #[should_panic(expected = "what others reach is not copied over itself")]
    fn overlapping_copy_of_shared_memory_panics() {
        let [target, source] = parts(true, [(0, 64), (8, 64)]);
        target.copy_from(source);
    }

    #[test]
    #[should_panic(expected = "a word is 8 bytes")]
    fn word_of_another_size_panics() {
        parts(true, [(0, 4)])[0].word();
    }

    #[test]
    #[should_panic(expected = "a line carries at most 56 bytes")]
    fn line_beyond_56_bytes_panics() {
        parts(true, [(0, 64)])[0].pack();
    }

    #[test]
    #[should_panic(expected = "what is combined is of one length")]
    fn operands_of_different_lengths_panic() {
        combine(true, [(0, 16), (64, 128), (32, 16)]);
    }

    #[test]
    #[should_panic(expected = "a target is an operand, or apart from it")]
    fn operand_that_overlaps_its_target_panics() {
        combine(false, [(8, 16), (0, 16), (64, 16)]);
    }

    #[test]
    fn equal_or_disjoint_operands_are_combined() {
        for is_shared in [false, true] {
            combine(is_shared, [(0, 16), (0, 16), (64, 16)]);
            combine(is_shared, [(64, 16), (0, 16), (64, 16)]);
            combine(is_shared, [(16, 16), (0, 16), (32, 16)]);
        }
    }
}

#[test]
fn every_length_arrives() {
    let mut source: Vec<u8> = (0..=255).cycle().take(1100).collect();
    for (bytes, from, to) in
        (0..=400).chain([1000]).flat_map(|bytes| [(bytes, 0, 0), (bytes, 3, 0), (bytes, 8, 5)])
    {
        let mut target = vec![0; 1100];
        let at = source.as_mut_ptr().wrapping_add(from);
        let theirs = Memory { shared: Some(SharedExtent::WORDS), ..Memory::private(at, bytes) };
        let own = Memory::private(target.as_mut_ptr().wrapping_add(to), bytes);
        // SAFETY: parts of two distinct buffers of 1100 bytes, owned here.
        unsafe { copy_shared(own, theirs) };
        assert_eq!(target[to..to + bytes], source[from..from + bytes]);
        assert!(target[..to].iter().chain(&target[to + bytes..]).all(|&byte| byte == 0));
    }
}

/// Tests both ways to copy for other cores, whichever is faster on this machine.
#[test]
fn every_length_is_staged() {
    type Way = unsafe fn(Memory, Memory);
    let ways: [Way; 2] = [|target, source| target.stage_from(source), copy_past_caches];
    let mut source: Vec<u8> = (0..=250).cycle().take(70_100).collect();
    for (bytes, from) in (0..200)
        .chain([4096, 16_383, 16_384, 16_447, 16_448, 70_001])
        .flat_map(|bytes| [(bytes, 0), (bytes, 7), (bytes, 16)])
    {
        for way in ways {
            let mut lines = vec![[0_u64; 8]; 1200];
            let skew = lines.as_ptr().addr().wrapping_neg() % 64;
            let target: &mut [u8] = bytemuck::cast_slice_mut(&mut lines);
            let at = target.as_mut_ptr().wrapping_add(skew);
            let theirs = Memory { shared: Some(SharedExtent::WORDS), ..Memory::private(at, bytes) };
            let own = Memory::private(source.as_mut_ptr().wrapping_add(from), bytes);
            // SAFETY: parts of two distinct buffers, owned here.
            unsafe { way(theirs, own) };
            assert_eq!(target[skew..skew + bytes], source[from..from + bytes]);
            assert!(target[..skew].iter().chain(&target[skew + bytes..]).all(|&byte| byte == 0));
        }
    }
}

/// Another PE may change a word as soon as it is written, and a second store would undo the change.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[test]
fn every_byte_is_stored_once() {
    use super::copy::{FEW_BYTES, MoveChunk, in_moves};

    /// The number of stores to each byte.
    struct Stores(Vec<u32>);

    impl MoveChunk for Stores {
        unsafe fn once<const BYTES: usize>(&mut self, at: usize) {
            self.0[at..at + BYTES].iter_mut().for_each(|stores| *stores += 1);
        }
    }

    for bytes in 0..=FEW_BYTES {
        let mut stores = Stores(vec![0; bytes]);
        // SAFETY: `stores` has `bytes` elements, and a move accesses no other memory.
        unsafe { in_moves(bytes, &mut stores) };
        assert!(stores.0.iter().all(|&stores| stores == 1), "{bytes}: {:?}", stores.0);
    }
}

/// Combines random bytes of all lengths up to a few vectors. All, some or none of the memory is
/// shared, and the target may be an operand. The oracle is a loop over elements.
fn combines_as_elements<T: Pod, O: Operator<T>>(operator: &O) {
    const MOST_BYTES: usize = 304;
    let kernel = Kernel::new(operator);
    let mut state = 2009;
    for bytes in (0..=MOST_BYTES).filter(|bytes| bytes.is_multiple_of(size_of::<T>())) {
        for (shared, place) in (0..8).flat_map(|shared| (0..3).map(move |place| (shared, place))) {
            let mut parts = [(); 3].map(|()| -> Vec<u8> {
                (0..MOST_BYTES + 1).map(|_| splitmix64(&mut state).to_le_bytes()[0]).collect()
            });
            // At an odd address, if the element type allows it.
            let odd = usize::from(size_of::<T>() == 1);
            let value = |part: &Vec<u8>, index: usize| -> T {
                let at = odd + index * size_of::<T>();
                bytemuck::pod_read_unaligned(&part[at..at + size_of::<T>()])
            };
            let expected: Vec<u8> = (0..bytes / size_of::<T>())
                .map(|index| operator.apply(value(&parts[1], index), value(&parts[2], index)))
                .flat_map(|both| bytemuck::bytes_of(&both).to_vec())
                .collect();
            let untouched = parts[place][odd + bytes..].to_vec();
            let mut index = 0;
            let memories = parts.each_mut().map(|part| {
                let is_shared = shared >> index & 1 == 1;
                index += 1;
                let at = part.as_mut_ptr().wrapping_add(odd);
                Memory {
                    shared: is_shared.then_some(SharedExtent::WORDS),
                    ..Memory::private(at, bytes)
                }
            });
            memories[place].combine(&kernel, memories[1], memories[2]);
            assert_eq!(parts[place][odd..odd + bytes], expected, "{bytes} B, {shared}, {place}");
            assert_eq!(parts[place][odd + bytes..], untouched);
        }
    }
}

#[test]
fn shared_memory_is_combined_as_private_memory_is() {
    combines_as_elements::<u8, _>(&Max);
    combines_as_elements::<i16, _>(&Min);
    combines_as_elements::<u32, _>(&Product);
    combines_as_elements::<f32, _>(&Min);
    combines_as_elements::<f64, _>(&Max);
    combines_as_elements::<u64, _>(&Sum);
    combines_as_elements::<i128, _>(&Sum);
    combines_as_elements::<u64, _>(&|a: u64, b: u64| a.rotate_left(7) ^ b);
}

/// Takes the element with the larger sum. Its size does not divide a vector's size.
struct Larger;

impl Operator<[u8; 12]> for Larger {
    const CLASS: OperatorClass = OperatorClass::Commutative;
    const NAME: &'static str = "Larger";

    fn apply(&self, left: [u8; 12], right: [u8; 12]) -> [u8; 12] {
        let sum = |bytes: &[u8; 12]| bytes.iter().map(|&byte| u32::from(byte)).sum::<u32>();
        match sum(&left).cmp(&sum(&right)).then(left.cmp(&right)) {
            Ordering::Less => right,
            Ordering::Equal | Ordering::Greater => left,
        }
    }
}

#[test]
fn elements_of_odd_sizes_are_combined() {
    combines_as_elements::<[u8; 12], _>(&Larger);
}
