//! Operators on the memory of simulated PEs.

#![expect(unsafe_code, reason = "operators work on raw memory")]

use consort_fabric::Kernel;

/// `left (op) right`, of equal lengths.
pub(crate) fn combined(kernel: &Kernel<'_>, left: &[u8], right: &[u8]) -> Vec<u8> {
    assert_eq!(left.len(), right.len(), "operands are of one length");
    let mut target = vec![0; left.len()];
    // SAFETY: three slices of `left.len()` bytes each. The target is new, so nothing else borrows
    // it.
    unsafe { kernel.combine(target.as_mut_ptr(), left.as_ptr(), right.as_ptr(), left.len()) };
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_fabric::Sum;

    #[test]
    fn operands_are_combined_wherever_they_lie() {
        let kernel = Kernel::new::<u64, _>(&Sum);
        let bytes: Vec<u8> = [1_u64, 2, 3].iter().flat_map(|v| v.to_ne_bytes()).collect();
        let sum = combined(&kernel, &bytes[..16], &bytes[8..]);
        let expected: Vec<u8> = [3_u64, 5].iter().flat_map(|v| v.to_ne_bytes()).collect();
        assert_eq!(sum, expected);
    }
}
