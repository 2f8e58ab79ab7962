//! Kernels: an operator on a datatype, erased to a function pointer and its state.
//!
//! An algorithm never sees a type: it moves bytes and calls the [`Kernel`] of its call. Otherwise
//! every algorithm would be compiled for every type, operator and mode, hundreds of times.

#![expect(unsafe_code, reason = "a kernel reads and writes elements behind erased pointers")]

mod racing;

use std::{fmt, marker::PhantomData};

use self::racing::Combine;
use crate::{Operator, OperatorClass, Pod, Visitor};

/// An operator on a datatype with both types erased: `target[i] = left[i] (op) right[i]`.
///
/// Borrows the operator's state for `'k`.
#[derive(Clone, Copy)]
pub struct Kernel<'k> {
    combine: Combine<()>,
    racing: Combine<usize>,
    state: *const (),
    element_bytes: usize,
    class: OperatorClass,
    operator: PhantomData<&'k ()>,
}

// SAFETY: the state is a shared borrow of an `Operator`, which is `Sync`, and elements are `Pod`,
// that is, plain bytes.
unsafe impl Send for Kernel<'_> {}
// SAFETY: as for `Send`; a kernel has no interior mutability.
unsafe impl Sync for Kernel<'_> {}

impl<'k> Kernel<'k> {
    /// Creates the kernel of `operator` on elements of `T`. For an operator on arrays it is a loop
    /// over their numbers.
    #[inline]
    pub fn new<T: Pod, O: Operator<T>>(operator: &'k O) -> Self {
        Self { element_bytes: size_of::<T>(), ..operator.visit(Erase) }
    }

    /// Returns the size of an element, in bytes.
    #[inline]
    #[must_use]
    pub const fn element_bytes(&self) -> usize {
        self.element_bytes
    }

    /// Returns a number that differs between kernels of different operators or datatypes. For
    /// arrays it is that of their numbers.
    #[inline]
    #[must_use]
    pub fn identity(&self) -> usize {
        self.combine as usize
    }

    /// Returns whether operands may be exchanged.
    #[inline]
    #[must_use]
    pub const fn class(&self) -> OperatorClass {
        self.class
    }

    /// Computes `target[i] = left[i] (op) right[i]` for the whole elements in `bytes`; for arrays,
    /// for the whole numbers.
    ///
    /// # Safety
    /// `left` and `right` are readable and `target` is writable for `bytes`. Nothing else writes
    /// the first two or accesses the third meanwhile. No alignment is needed. `target` may equal
    /// `left` or `right`, but may not overlap either in any other way.
    #[inline]
    pub unsafe fn combine(&self, target: *mut u8, left: *const u8, right: *const u8, bytes: usize) {
        // SAFETY: the caller's promise is the function's; `state` is the operator for which
        // `combine` was made, borrowed for `'k`.
        unsafe { (self.combine)(self.state, target, left, right, bytes) }
    }

    /// Like [`Kernel::combine`], but on memory that others may access meanwhile. It processes a
    /// prefix of `bytes` for which a loop exists: whole elements or, for arrays, whole numbers;
    /// possibly none. Returns the length of the prefix in bytes.
    ///
    /// # Safety
    /// As for [`Kernel::combine`], but others may access all three buffers atomically, or through
    /// this function. A value that is read while it is written may be a mixture.
    #[inline]
    pub unsafe fn combine_racing(
        &self,
        target: *mut u8,
        left: *const u8,
        right: *const u8,
        bytes: usize,
    ) -> usize {
        // SAFETY: as in `combine`.
        unsafe { (self.racing)(self.state, target, left, right, bytes) }
    }
}

/// Erases an operator and its datatype.
struct Erase;

impl<'k> Visitor<'k> for Erase {
    type Output = Kernel<'k>;

    #[inline]
    fn operator<T: Pod, O: Operator<T>>(self, operator: &'k O) -> Kernel<'k> {
        Kernel {
            combine: combine::<T, O>,
            racing: racing::racing::<T, O>(),
            state: std::ptr::from_ref(operator).cast(),
            element_bytes: size_of::<T>(),
            class: O::CLASS,
            operator: PhantomData,
        }
    }
}

impl Kernel<'_> {
    /// Computes `left[i] = left[i] (op) right[i]` for the elements that both have.
    pub fn accumulate(&self, left: &mut [u8], right: &[u8]) {
        let (at, bytes) = (left.as_mut_ptr(), left.len().min(right.len()));
        // SAFETY: these are two slices of at least `bytes`, the first mutably borrowed; the target
        // is the left operand.
        unsafe { self.combine(at, at, right.as_ptr(), bytes) }
    }
}

impl fmt::Debug for Kernel<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel")
            .field("element_bytes", &self.element_bytes)
            .field("class", &self.class)
            .finish_non_exhaustive()
    }
}

/// Runs the loop of a kernel.
///
/// # Safety
/// As [`Kernel::combine`], for elements of `T`; `state` points to an `O`.
unsafe fn combine<T: Pod, O: Operator<T>>(
    state: *const (),
    target: *mut u8,
    left: *const u8,
    right: *const u8,
    bytes: usize,
) {
    // SAFETY: `Erase` made `state` from a borrow of an `O` that is still alive.
    let operator = unsafe { &*state.cast::<O>() };
    let (target, left, right) = (target.cast::<T>(), left.cast::<T>(), right.cast::<T>());
    if bytes == size_of::<T>() && bytes > 0 {
        // SAFETY: one element is readable, by the caller's promise; any bit pattern is a value.
        let a = unsafe { left.read_unaligned() };
        // SAFETY: as above.
        let b = unsafe { right.read_unaligned() };
        // SAFETY: writable, by the caller's promise.
        return unsafe { target.write_unaligned(operator.apply(a, b)) };
    }
    let count = bytes.checked_div(size_of::<T>()).unwrap_or(0);
    // SAFETY: the caller's promise.
    unsafe { many(operator, target, left, right, count) }
}

/// The loop for several elements. It is separate so that [`combine`] saves no registers for one.
///
/// # Safety
/// As [`combine`].
#[inline(never)]
unsafe fn many<T: Pod, O: Operator<T>>(
    operator: &O,
    target: *mut T,
    left: *const T,
    right: *const T,
    count: usize,
) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if count >= WIDE_COUNT
        && matches!(O::CLASS, OperatorClass::Commutative)
        && std::arch::is_x86_feature_detected!("avx2")
    {
        // SAFETY: the machine has AVX2; the rest is the caller's promise.
        return unsafe { all_wide(operator, target, left, right, count) };
    }
    // SAFETY: the caller's promise.
    unsafe { all(operator, target, left, right, count) }
}

/// From this number of elements on, checking for wide vectors pays off.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const WIDE_COUNT: usize = 32;

/// Like [`all`], in vectors of 32 bytes. Min and Max of floats do twice the work of the processor's
/// own instructions, which do not define the order of zeros; the wider vectors compensate for it.
///
/// # Safety
/// As [`combine`], and the machine has AVX2.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx2")]
unsafe fn all_wide<T: Pod, O: Operator<T>>(
    operator: &O,
    target: *mut T,
    left: *const T,
    right: *const T,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { all(operator, target, left, right, count) }
}

/// # Safety
/// As [`combine`].
#[inline(always)]
unsafe fn all<T: Pod, O: Operator<T>>(
    operator: &O,
    target: *mut T,
    left: *const T,
    right: *const T,
    count: usize,
) {
    // If the target is an operand, the calls make that visible; otherwise compilers do not
    // vectorize.
    if target.cast_const() == left {
        // SAFETY: the caller's promise.
        unsafe { each(operator, target, target, right, count) }
    } else if target.cast_const() == right {
        // SAFETY: the caller's promise.
        unsafe { each(operator, target, left, target, count) }
    } else {
        // SAFETY: the caller's promise.
        unsafe { each(operator, target, left, right, count) }
    }
}

/// # Safety
/// As [`combine`].
#[inline(always)]
unsafe fn each<T: Pod, O: Operator<T>>(
    operator: &O,
    target: *mut T,
    left: *const T,
    right: *const T,
    count: usize,
) {
    for index in 0..count {
        // SAFETY: element `index < count` is readable, by the caller's promise; any bit pattern is
        // a value of a `Pod`.
        let a = unsafe { left.wrapping_add(index).read_unaligned() };
        // SAFETY: as above.
        let b = unsafe { right.wrapping_add(index).read_unaligned() };
        let both = operator.apply(a, b);
        // SAFETY: writable, by the caller's promise.
        unsafe { target.wrapping_add(index).write_unaligned(both) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BitAnd, BitOr, BitXor, Max, Min, Product, Sum, splitmix64};

    fn apply<T: Pod, O: Operator<T>>(operator: &O, left: &[T], right: &[T]) -> Vec<T> {
        let mut target = vec![T::zeroed(); left.len()];
        let kernel = Kernel::new(operator);
        // SAFETY: these are three distinct buffers of the same length, owned here.
        unsafe {
            kernel.combine(
                target.as_mut_ptr().cast(),
                left.as_ptr().cast(),
                right.as_ptr().cast(),
                size_of_val(left),
            );
        }
        target
    }

    /// With a noncommutative operator, on many elements; the target may be either operand.
    #[test]
    fn the_target_may_be_an_operand() {
        let minus = |a: u64, b: u64| a.wrapping_sub(b);
        let kernel = Kernel::new::<u64, _>(&minus);
        let [left, right] = [7, 3].map(|by| (0..100).map(|word| by * word).collect::<Vec<u64>>());
        let expected: Vec<u64> = (0..100).map(|word| 4 * word).collect();
        assert_eq!(apply(&minus, &left, &right), expected);
        let bytes = size_of_val(&left[..]);
        let (mut target, other) = (left.clone(), right.as_ptr().cast());
        let at = target.as_mut_ptr().cast::<u8>();
        // SAFETY: two distinct buffers of this length, the target being the left operand.
        unsafe { kernel.combine(at, at, other, bytes) };
        assert_eq!(target, expected);
        let (mut target, other) = (right, left.as_ptr().cast());
        let at = target.as_mut_ptr().cast::<u8>();
        // SAFETY: two distinct buffers of this length, the target being the right operand.
        unsafe { kernel.combine(at, other, at, bytes) };
        assert_eq!(target, expected);
    }

    /// An operator on arrays is a loop over their numbers: as fast, and the same code.
    #[test]
    fn an_array_is_combined_as_its_numbers() {
        let of_numbers = Kernel::new::<f64, _>(&Sum);
        assert_eq!(Kernel::new::<[f64; 3], _>(&Sum).identity(), of_numbers.identity());
        assert_eq!(Kernel::new::<[[f64; 3]; 5], _>(&Sum).identity(), of_numbers.identity());
        assert_eq!(apply(&Sum, &[[1.0; 0]; 3], &[[]; 3]), [[]; 3]);
    }

    #[cfg(feature = "num-complex")]
    #[test]
    fn sum_of_complex_numbers_is_the_sum_of_their_parts() {
        use num_complex::Complex;

        let of_numbers = Kernel::new::<f64, _>(&Sum);
        let sum = Kernel::new::<Complex<f64>, _>(&Sum);
        assert_eq!((sum.identity(), sum.element_bytes()), (of_numbers.identity(), 16));
        let [left, right] = [Complex::new(1.5_f32, -2.0), Complex::new(0.5, 4.0)];
        assert_eq!(apply(&Sum, &[left; 40], &[right; 40]), [Complex::new(2.0, 2.0); 40]);
        assert_eq!(apply(&Product, &[left; 40], &[right; 40]), [Complex::new(8.75, 5.0); 40]);
        assert_eq!(Kernel::new::<Complex<f32>, _>(&Product).class(), OperatorClass::Commutative);
    }

    /// Compares minima and maxima of all pairs of `values`, alone and among many, with the
    /// definition.
    macro_rules! extremes_of {
        ($float:ty, $values:expr) => {{
            let values: Vec<$float> = $values;
            let is_below = |a: $float, b: $float| a < b || (a == b && a.is_sign_negative());
            let chosen = |a: $float, b: $float, takes_a: bool| match (a.is_nan(), b.is_nan()) {
                (true, true) => <$float>::NAN,
                (true, false) => b,
                (false, true) => a,
                (false, false) => {
                    if takes_a {
                        a
                    } else {
                        b
                    }
                }
            };
            for &a in &values {
                // A single element, then narrow and wide vectors, each with a remainder.
                for len in [1, values.len(), 4 * values.len() + 3] {
                    let left = vec![a; len];
                    let right: Vec<$float> = values.iter().copied().cycle().take(len).collect();
                    let expected = |takes_a: fn(bool) -> bool| -> Vec<_> {
                        let one = |&b: &$float| chosen(a, b, takes_a(is_below(a, b))).to_bits();
                        right.iter().map(one).collect()
                    };
                    let bits = |found: Vec<$float>| -> Vec<_> {
                        found.into_iter().map(<$float>::to_bits).collect()
                    };
                    let (smaller, larger) =
                        (expected(|is_below| is_below), expected(|is_below| !is_below));
                    assert_eq!(bits(apply(&Min, &left, &right)), smaller, "min of {a:?}");
                    assert_eq!(bits(apply(&Min, &right, &left)), smaller, "min with {a:?}");
                    assert_eq!(bits(apply(&Max, &left, &right)), larger, "max of {a:?}");
                    assert_eq!(bits(apply(&Max, &right, &left)), larger, "max with {a:?}");
                }
            }
        }};
    }

    #[test]
    fn extremes_are_the_same_bits_in_either_order() {
        // Quiet and signalling NaNs of both signs, and the smallest and largest numbers of each
        // kind.
        let nans = [0x7ff8 << 48, 0xfff8 << 48, 0x7ff0 << 48 | 1, u64::MAX, 0x7ff8 << 48 | 77];
        let small = [0, 1, (1 << 52) - 1, 1 << 52].map(f64::from_bits);
        let mut values = vec![1.0, 1.5, 1e300, f64::MAX, f64::INFINITY];
        values.extend(small);
        values.extend(values.clone().into_iter().map(|value| -value));
        values.extend(nans.map(f64::from_bits));
        extremes_of!(f64, values);
        let nans = [0x7fc0 << 16, 0xffc0 << 16, 0x7f80 << 16 | 1, u32::MAX, 0x7fc0 << 16 | 77];
        let small = [0, 1, (1 << 23) - 1, 1 << 23].map(f32::from_bits);
        let mut values = vec![1.0, 1.5, 1e30, f32::MAX, f32::INFINITY];
        values.extend(small);
        values.extend(values.clone().into_iter().map(|value| -value));
        values.extend(nans.map(f32::from_bits));
        extremes_of!(f32, values);
    }

    /// Quiet and signalling NaNs of both signs, the smallest and largest numbers of each kind, and
    /// others between.
    #[cfg(feature = "half")]
    #[test]
    fn extremes_of_short_floats_are_the_same_bits_in_either_order() {
        use half::{bf16, f16};

        let both_signs = |bits: [u16; 12]| bits.into_iter().flat_map(|bits| [bits, 0x8000 | bits]);
        let [one, largest, infinity] = [0x3c00, 0x7bff, 0x7c00];
        let nans = [infinity | 1, 0x7e00, 0x7e4d, 0x7fff];
        let [a, b, c, d] = nans;
        let all = both_signs([0, 1, 0x3ff, 0x400, 0x401, one, largest, infinity, a, b, c, d]);
        extremes_of!(f16, all.map(f16::from_bits).collect());
        let [one, largest, infinity] = [0x3f80, 0x7f7f, 0x7f80];
        let nans = [infinity | 1, 0x7fc0, 0x7fcd, 0x7fff];
        let [a, b, c, d] = nans;
        let all = both_signs([0, 1, 0x7f, 0x80, 0x81, one, largest, infinity, a, b, c, d]);
        extremes_of!(bf16, all.map(bf16::from_bits).collect());
    }

    #[test]
    fn extremes_of_any_bits_are_the_same_in_either_order() {
        let mut state = 0;
        for _ in 0..50 {
            let bits: Vec<u64> = (0..20).map(|_| splitmix64(&mut state)).collect();
            extremes_of!(f64, bits.iter().copied().map(f64::from_bits).collect());
            let halves: Vec<u32> = bytemuck::cast_slice(&bits).to_vec();
            extremes_of!(f32, halves.into_iter().map(f32::from_bits).collect());
        }
    }

    #[test]
    fn operators_do_what_their_names_say() {
        assert_eq!(apply(&Sum, &[1_u8, 255], &[2, 2]), [3, 1]);
        assert_eq!(apply(&Product, &[1.5, 2.0], &[2.0, 0.5]), [3.0, 1.0]);
        assert_eq!(apply(&Min, &[f64::NAN, 2.0], &[1.0, f64::NAN]), [1.0, 2.0]);
        assert_eq!(apply(&Max, &[i128::MIN, 3], &[-1, 2]), [-1, 3]);
        assert_eq!(apply(&BitXor, &[0b1100_u16], &[0b1010]), [0b0110]);
        assert_eq!(apply(&BitAnd, &[0b1100_u64], &[0b1010]), [0b1000]);
        assert_eq!(apply(&BitOr, &[0b1100_i32], &[0b1010]), [0b1110]);
        let [left, right] = [[[1.5, -2.0], [3.0, 4.0]], [[0.5, 2.0], [-3.0, 8.0]]];
        assert_eq!(apply(&Sum, &[left; 40], &[right; 40]), [[[2.0, 0.0], [0.0, 12.0]]; 40]);
        assert_eq!(apply(&Max, &[left], &[right]), [[[1.5, 2.0], [3.0, 8.0]]]);
        assert_eq!(Sum.apply(left, right), [[2.0, 0.0], [0.0, 12.0]]);
        assert_eq!(Kernel::new::<[[f64; 2]; 2], _>(&Sum).element_bytes(), 32);
        assert_eq!([BitAnd.apply(true, false), BitOr.apply(true, false)], [false, true]);
        assert!(!BitXor.apply(true, true));
        let first = |a: [u8; 3], _: [u8; 3]| a;
        assert_eq!(apply(&first, &[[1, 2, 3]], &[[4, 5, 6]]), [[1, 2, 3]]);
        assert_eq!(Kernel::new::<[u8; 3], _>(&first).class(), OperatorClass::Ordered);
    }
}
