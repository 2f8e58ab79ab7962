//! The classes of the benchmark: their sizes and checksums.
//!
//! Source: the reference implementation of the NAS Parallel Benchmarks 3. Its verification accepts
//! a relative error of 1e-12.

/// A problem of the benchmark.
#[derive(Clone, Copy, Debug)]
pub struct Class {
    /// Its letter.
    pub name: &'static str,
    /// Points along x, y and z.
    pub extents: [usize; 3],
    /// The real and the imaginary part of the checksum of each iteration.
    pub checksums: &'static [[f64; 2]],
}

impl Class {
    /// The classes, by size.
    pub const ALL: [Self; 4] = [
        Self { name: "S", extents: [64, 64, 64], checksums: &S },
        Self { name: "W", extents: [128, 128, 32], checksums: &W },
        Self { name: "A", extents: [256, 256, 128], checksums: &A },
        Self { name: "B", extents: [512, 256, 256], checksums: &B },
    ];

    /// Returns the number of points.
    #[must_use]
    pub fn points(&self) -> usize {
        self.extents.iter().product()
    }

    /// Returns the number of operations that the benchmark counts: those of the first transform,
    /// and of the evolution, transform and checksum of each iteration.
    #[must_use]
    pub fn flops(&self) -> f64 {
        let (points, iterations) = (self.points() as f64, self.checksums.len() as f64);
        let log = points.ln();
        points * (14.8157 + 7.19641 * log + (5.23518 + 7.21113 * log) * iterations)
    }
}

const S: [[f64; 2]; 6] = [
    [554.608_700_496_4, 484.536_333_197_8],
    [554.638_540_918_9, 486.530_426_951_1],
    [554.614_840_617_1, 488.391_072_233_6],
    [554.542_360_741_5, 490.127_316_904_6],
    [554.425_503_962_4, 491.747_585_799_3],
    [554.268_341_190_2, 493.259_724_494_1],
];

const W: [[f64; 2]; 6] = [
    [567.361_217_894_4, 529.324_684_917_5],
    [563.143_688_527_1, 528.214_998_662_9],
    [559.402_408_997_0, 527.099_655_803_7],
    [556.069_804_702_0, 526.002_790_492_5],
    [553.089_899_125_0, 524.940_084_563_3],
    [550.415_973_453_8, 523.921_224_708_6],
];

const A: [[f64; 2]; 6] = [
    [504.673_500_819_3, 511.404_790_551_0],
    [505.941_231_973_4, 509.880_966_643_3],
    [506.937_689_628_7, 509.814_404_221_3],
    [507.789_286_847_4, 510.133_613_075_9],
    [508.523_309_539_1, 510.491_465_519_4],
    [509.148_709_995_9, 510.791_784_280_3],
];

const B: [[f64; 2]; 20] = [
    [517.764_357_157_9, 507.780_345_859_7],
    [515.452_129_126_3, 508.824_943_159_9],
    [514.640_922_864_9, 509.620_891_265_9],
    [514.237_875_621_3, 510.102_338_761_9],
    [513.962_666_773_7, 510.397_661_061_7],
    [513.742_346_008_2, 510.594_801_980_2],
    [513.554_705_687_8, 510.740_416_578_3],
    [513.391_092_546_6, 510.857_657_366_1],
    [513.247_070_539_0, 510.957_727_852_3],
    [513.119_772_998_4, 511.046_030_448_3],
    [513.007_031_928_3, 511.125_243_380_0],
    [512.907_053_703_2, 511.196_807_771_8],
    [512.818_288_350_2, 511.261_623_306_4],
    [512.739_373_338_3, 511.320_360_555_1],
    [512.669_106_202_0, 511.373_592_809_3],
    [512.606_427_600_4, 511.421_846_054_8],
    [512.550_407_657_0, 511.465_613_976_0],
    [512.500_233_172_0, 511.505_359_596_6],
    [512.455_195_184_6, 511.541_513_040_7],
    [512.414_677_002_9, 511.574_469_221_1],
];
