//! Tests of copies and combinations, and of what they reject.

#![expect(unsafe_code, reason = "copies between raw addresses")]

use consort_fabric::{Kernel, Sum};

use super::{copy::copy_shared, extent::Extent, region::Memory};

/// Mistakes of an algorithm, which is safe code: they panic.
mod lengths_that_differ {
    use super::*;

    /// Parts of one allocation of 256 bytes, shared or private.
    fn parts<const N: usize>(is_shared: bool, spans: [(usize, usize); N]) -> [Memory; N] {
        let memory = Box::leak(Box::new([0_u64; 32])).as_mut_ptr().cast::<u8>();
        let shared = is_shared.then_some(Extent::WORDS);
        spans.map(|(at, bytes)| Memory { at: memory.wrapping_add(at), bytes, shared })
    }

    fn combine(is_shared: bool, spans: [(usize, usize); 3]) {
        let [target, left, right] = parts(is_shared, spans);
        target.combine(&Kernel::new::<u64, _>(&Sum), left, right);
    }

    #[test]
    #[should_panic(expected = "a copy is as long as what is copied")]
    fn a_copy() {
        let [target, source] = parts(false, [(0, 16), (64, 24)]);
        target.copy_from(source);
    }

    #[test]
    #[should_panic(expected = "what others reach is not copied over itself")]
    fn a_copy_that_overlaps() {
        let [target, source] = parts(true, [(0, 64), (8, 64)]);
        target.copy_from(source);
    }

    #[test]
    #[should_panic(expected = "a word is 8 bytes")]
    fn a_word() {
        parts(true, [(0, 4)])[0].word();
    }

    #[test]
    #[should_panic(expected = "a line carries at most 56 bytes")]
    fn a_line() {
        parts(true, [(0, 64)])[0].pack();
    }

    #[test]
    #[should_panic(expected = "what is combined is of one length")]
    fn operands() {
        combine(true, [(0, 16), (64, 128), (32, 16)]);
    }

    #[test]
    #[should_panic(expected = "a target is an operand, or apart from it")]
    fn operands_that_overlap() {
        combine(false, [(8, 16), (0, 16), (64, 16)]);
    }

    #[test]
    fn what_may_be_combined() {
        for is_shared in [false, true] {
            combine(is_shared, [(0, 16), (0, 16), (64, 16)]);
            combine(is_shared, [(64, 16), (0, 16), (64, 16)]);
            combine(is_shared, [(16, 16), (0, 16), (32, 16)]);
        }
    }
}

#[test]
fn every_length_arrives() {
    let mut source: Vec<u8> = (0..=255).cycle().take(1000).collect();
    for bytes in [0, 1, 7, 8, 55, 56, 57, 63, 64, 65, 1000] {
        let mut target = vec![0; 1000];
        let from =
            Memory { shared: Some(Extent::WORDS), ..Memory::private(source.as_mut_ptr(), bytes) };
        // SAFETY: two distinct buffers of 1000 bytes, owned here.
        unsafe { copy_shared(Memory::private(target.as_mut_ptr(), bytes), from) };
        assert_eq!(target[..bytes], source[..bytes]);
        assert!(target[bytes..].iter().all(|&byte| byte == 0));
    }
}
