//! A decode step of a language model: 150 matrix-vector products in 8-bit integers, one region
//! each.
//!
//! Each of 30 layers has five products: the query; the keys and values; the output of the
//! attention; the gate and the values of the inner layer, which are multiplied; the inner layer's
//! output. The attention itself, the normalization and the embedding are left out, so a token costs
//! only regions and products. Sums have 32 bits, and are then scaled to 8 bits.

use anyhow::Result;

use super::parts::{RegionProgram, each_part};
use crate::{peers::fork_join::ForkJoin, rng::Rng};

const LAYERS: usize = 30;
/// Layers take turns in using the same weights, if they would need more memory than this.
const MOST_BYTES: usize = 128 << 20;

/// The widths of a model.
#[derive(Clone, Copy)]
pub(super) struct Model {
    width: usize,
    /// Of keys and values together.
    keys_values: usize,
    inner: usize,
}

impl Model {
    /// 135 million parameters, as in `SmolLM`: products from 384 x 576 to 3072 x 576.
    pub(super) const SMALL: Self = Self { width: 576, keys_values: 384, inner: 1536 };
    /// The layers of a model of 8 thousand million parameters, as in Llama 3: products from
    /// 2048 x 4096 to 28672 x 4096 and 4096 x 14336.
    pub(super) const LARGE: Self = Self { width: 4096, keys_values: 2048, inner: 14336 };

    const fn layer_bytes(self) -> usize {
        self.width * (2 * self.width + self.keys_values + 3 * self.inner)
    }
}

/// The weights of a layer, row by row.
struct Layer {
    query: Vec<i8>,
    keys_values: Vec<i8>,
    output: Vec<i8>,
    /// For each inner value the row of the gate, then that of the value.
    gate_up: Vec<i8>,
    down: Vec<i8>,
}

/// A model with the values of the current token.
pub(super) struct Decode {
    layers: Vec<Layer>,
    token: Vec<i8>,
    query: Vec<i8>,
    keys_values: Vec<i8>,
    attended: Vec<i8>,
    inner: Vec<i8>,
    added: Vec<i8>,
}

/// Values around zero that look random.
fn random(rng: &mut Rng, len: usize) -> Vec<i8> {
    let mut values: Vec<i8> = Vec::with_capacity(len + 7);
    while values.len() < len {
        values.extend(rng.below(u64::MAX).to_le_bytes().map(u8::cast_signed));
    }
    values.truncate(len);
    values
}

impl Decode {
    pub(super) fn new(model: Model) -> Self {
        let Model { width, keys_values, inner } = model;
        let mut rng = Rng(150);
        let mut values = |len| random(&mut rng, len);
        let token = values(width);
        let mut layer = || Layer {
            query: values(width * width),
            keys_values: values(keys_values * width),
            output: values(width * width),
            gate_up: values(2 * inner * width),
            down: values(width * inner),
        };
        let different = (MOST_BYTES / model.layer_bytes()).clamp(1, LAYERS);
        let layers = (0..different).map(|_| layer()).collect();
        let zeros = |len| vec![0; len];
        Self {
            layers,
            token,
            query: zeros(width),
            keys_values: zeros(keys_values),
            attended: zeros(width),
            inner: zeros(inner),
            added: zeros(width),
        }
    }
}

fn dot(row: &[i8], vector: &[i8]) -> i32 {
    row.iter().zip(vector).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

/// Scales a sum of `len` products to 8 bits, so that most random values fit.
fn scaled(sum: i32, len: usize) -> i8 {
    // A product of random values has a standard deviation of 74 squared.
    let scaled = sum / (128 * i32::try_from(len.isqrt()).unwrap_or(i32::MAX));
    i8::try_from(scaled.clamp(-127, 127)).unwrap_or(0)
}

/// Multiplies a matrix and a vector in a region.
fn product(
    threads: &mut dyn ForkJoin,
    matrix: &[i8],
    vector: &[i8],
    result: &mut [i8],
) -> Result<()> {
    let len = vector.len();
    each_part(threads, result, |first, part| {
        for (row, place) in matrix[first * len..].chunks_exact(len).zip(part) {
            *place = scaled(dot(row, vector), len);
        }
    })
}

impl RegionProgram for Decode {
    fn iterate(&mut self, threads: &mut dyn ForkJoin) -> Result<()> {
        let Self { layers, token, query, keys_values, attended, inner, added } = self;
        let width = token.len();
        for number in 0..LAYERS {
            let layer = &layers[number % layers.len()];
            product(threads, &layer.query, token, query)?;
            product(threads, &layer.keys_values, token, keys_values)?;
            for (query, other) in query.iter_mut().zip(keys_values.iter().cycle()) {
                *query ^= other;
            }
            product(threads, &layer.output, query, attended)?;
            each_part(threads, inner, |first, part| {
                let rows = layer.gate_up[2 * first * width..].chunks_exact(2 * width);
                for (rows, place) in rows.zip(part) {
                    let (gate, up) = rows.split_at(width);
                    let [gate, up] = [gate, up].map(|row| scaled(dot(row, attended), width));
                    *place = if gate > 0 { up } else { up / 4 };
                }
            })?;
            product(threads, &layer.down, inner, added)?;
            for (token, added) in token.iter_mut().zip(&*added) {
                *token = token.wrapping_add(*added);
            }
        }
        Ok(())
    }

    fn results(&self) -> Vec<u64> {
        self.token.iter().map(|&value| u64::from(value.cast_unsigned())).collect()
    }

    fn restart(&mut self) {
        self.token = random(&mut Rng(150), self.token.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::fork_join::serial;

    #[test]
    fn tokens_differ_and_do_not_saturate() {
        let mut decode = Decode::new(Model { width: 32, keys_values: 16, inner: 64 });
        let first = decode.results();
        decode.iterate(&mut *serial()).unwrap();
        let second = decode.results();
        assert_ne!(first, second);
        let extreme = |value: &&i8| value.unsigned_abs() == 127;
        assert!(decode.inner.iter().filter(extreme).count() < 8, "{:?}", decode.inner);
        assert!(decode.inner.iter().filter(|value| **value != 0).count() > 32);
        decode.restart();
        assert_eq!(decode.results(), first);
    }
}
