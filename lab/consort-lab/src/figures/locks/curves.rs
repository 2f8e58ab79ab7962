//! Curves that compare several ways, over the number of threads or of increments.

use std::ops::RangeBounds;

use anyhow::Result;

use super::run::Point;

/// The points of each way, over a number.
pub(super) struct Curves {
    numbers: Vec<u32>,
    rows: Vec<(&'static str, Vec<Point>)>,
}

impl Curves {
    /// Runs each way with each number.
    ///
    /// # Errors
    /// When a simulation fails.
    pub(super) fn run<W>(
        ways: impl IntoIterator<Item = (&'static str, W)>,
        numbers: &[u32],
        point: impl Fn(&W, u32) -> Result<Point>,
    ) -> Result<Self> {
        let row = |way| numbers.iter().map(|&number| point(&way, number)).collect::<Result<_>>();
        let rows = ways.into_iter().map(|(name, way)| Ok((name, row(way)?)));
        Ok(Self { numbers: numbers.to_vec(), rows: rows.collect::<Result<_>>()? })
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        self.numbers.iter().copied()
    }

    /// Returns each way with its points.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&'static str, &[Point])> {
        self.rows.iter().map(|(name, points)| (*name, points.as_slice()))
    }

    /// Returns the points of a way.
    ///
    /// # Panics
    /// When there is no such way.
    pub(super) fn of(&self, name: &str) -> &[Point] {
        let found = self.rows().find(|(other, _)| *other == name);
        found.unwrap_or_else(|| panic!("no curve {name}")).1
    }

    /// Returns the point of a way with a number.
    ///
    /// # Panics
    /// When there is none.
    pub(super) fn at(&self, name: &str, number: u32) -> &Point {
        let index = self.numbers.iter().position(|&other| other == number);
        &self.of(name)[index.unwrap_or_else(|| panic!("no point at {number}"))]
    }

    /// Returns, for each number, a way's operations per second over those of the fastest other way.
    pub(super) fn gains(
        &self,
        name: &str,
        others: &[&str],
        numbers: impl RangeBounds<u32>,
    ) -> Vec<f64> {
        self.ratios(name, others, numbers, |point| point.mops, f64::max)
    }

    /// Returns, for each number, a way's latency over that of the fastest other way.
    pub(super) fn delays(
        &self,
        name: &str,
        others: &[&str],
        numbers: impl RangeBounds<u32>,
    ) -> Vec<f64> {
        self.ratios(name, others, numbers, Point::latency_ns, f64::min)
    }

    fn ratios(
        &self,
        name: &str,
        others: &[&str],
        numbers: impl RangeBounds<u32>,
        value: impl Fn(&Point) -> f64,
        best: impl Fn(f64, f64) -> f64,
    ) -> Vec<f64> {
        let ratio = |number| {
            let other = others.iter().map(|other| value(self.at(other, number)));
            value(self.at(name, number)) / other.reduce(&best).unwrap_or(f64::NAN)
        };
        self.numbers().filter(|number| numbers.contains(number)).map(ratio).collect()
    }
}

/// Returns the smallest of some values.
pub(super) fn least(values: Vec<f64>) -> f64 {
    values.into_iter().fold(f64::INFINITY, f64::min)
}

/// Returns the largest of some values.
pub(super) fn most(values: Vec<f64>) -> f64 {
    values.into_iter().fold(f64::NEG_INFINITY, f64::max)
}
