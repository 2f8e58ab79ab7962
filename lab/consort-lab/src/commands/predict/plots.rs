//! Plots of predictions: each prediction next to its measurement, and both over sizes.

use std::collections::BTreeMap;

use crate::prediction::{Call, Predicted};
use consort::{sync_modes::SyncModes, tune::Collective};
use consort_bench::units;
use consort_report::{Document, Lines, Point, Scale, Series};

use consort_console::{output::time, report::axes};

/// Adds a section of plots.
pub(super) fn plots(document: &mut Document, predicted: &Predicted) {
    document.section("Plots");
    against(document, predicted);
    let mut kinds: BTreeMap<(Collective, SyncModes), Vec<&Call>> = BTreeMap::new();
    for call in &predicted.calls {
        let kind = (call.query.collective, call.query.sync);
        kinds.entry(kind).or_default().push(call);
    }
    for ((collective, sync), calls) in kinds.into_iter().filter(|(_, calls)| calls.len() > 1) {
        over_sizes(document, &format!("{collective}, {sync}"), &calls);
    }
}

/// The ways of predicting, and the prediction that each makes for a call.
type Way = (&'static str, fn(&Call) -> Option<f64>);
const WAYS: [Way; 2] =
    [("simulated", |call| Some(call.predicted_ns)), ("LogGP", |call| call.model_ns)];

/// Plots the predicted over the measured times of all calls.
fn against(document: &mut Document, predicted: &Predicted) {
    let mut collectives: Vec<Collective> =
        predicted.calls.iter().map(|call| call.query.collective).collect();
    collectives.sort_unstable();
    collectives.dedup();
    let mut series = Vec::new();
    for (way, of) in WAYS {
        for &collective in &collectives {
            let its = predicted.calls.iter().filter(|call| call.query.collective == collective);
            let points: Vec<Point> = its
                .filter_map(|call| {
                    let ns = of(call)?;
                    let x_text = format!("{}, {}", call.query, time(call.measured_ns));
                    let y_text = format!("{way}, {}", time(ns));
                    Some(Point { x: call.measured_ns, y: ns, interval: None, x_text, y_text })
                })
                .collect();
            if !points.is_empty() {
                let name = format!("{collective}, {way}");
                series.push(Series { is_joined: false, ..Series::new(name, points) });
            }
        }
    }
    let longest = predicted
        .calls
        .iter()
        .flat_map(|call| WAYS.into_iter().filter_map(|(_, of)| of(call)).chain([call.measured_ns]));
    let longest = longest.fold(0.0, f64::max);
    document.curves(&Lines {
        title: "Predicted and measured".to_owned(),
        x: axes::times("Time of a call, measured", Scale::Log, longest),
        y: axes::times("Time of a call, predicted", Scale::Log, longest),
        series,
        diagonal: Some("as measured".to_owned()),
    });
}

/// Plots the times of calls of one kind over their sizes.
fn over_sizes(document: &mut Document, title: &str, calls: &[&Call]) {
    let line = |name: &str, of: &dyn Fn(&Call) -> Option<f64>| {
        let point = |call: &&Call| {
            let ns = of(call)?;
            let bytes = call.query.bytes;
            let (x_text, y_text) = (units::size(bytes), time(ns));
            Some(Point { x: bytes as f64, y: ns, interval: None, x_text, y_text })
        };
        let mut points: Vec<Point> = calls.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        Series::new(name, points)
    };
    let measured = line("measured", &|call| Some(call.measured_ns));
    let ways = WAYS.into_iter().map(|(way, of)| line(way, &of));
    let series: Vec<Series> =
        [measured].into_iter().chain(ways).filter(|one| !one.points.is_empty()).collect();
    let all = series.iter().flat_map(|one| one.points.iter().map(|point| point.y));
    let y = axes::times("Time of a call", Scale::Log, all.fold(0.0, f64::max));
    let title = title.to_owned();
    document.curves(&Lines { title, x: axes::sizes("Size of a block"), y, series, diagonal: None });
}
