//! Tests `consort-lab reproduce` for the claims on the SCC: the simulated figures stay in their
//! ranges. Virtual time is the same on every machine.

use std::process::Command;

use serde_json::Value;

/// The figures of a claim, as objects.
struct Figures(Vec<Value>);

impl Figures {
    fn of(claim: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_consort-lab"));
        let output = command
            .args(["reproduce", claim, "--budget", "0", "--json"])
            .output()
            .expect("the command starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        Self(text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
    }

    fn number(&self, quantity: &str, key: &str) -> f64 {
        let figure = self.0.iter().find(|figure| figure["quantity"] == quantity).expect(quantity);
        figure[key].as_f64().expect(key)
    }

    /// Returns a simulated figure, whether it was fitted or not.
    fn value(&self, quantity: &str) -> f64 {
        let figure = self.0.iter().find(|figure| figure["quantity"] == quantity).expect(quantity);
        let key = if figure["fitted"].is_null() { "simulated" } else { "fitted" };
        self.number(quantity, key)
    }

    #[track_caller]
    fn simulated(&self, quantity: &str, range: std::ops::RangeInclusive<f64>) {
        let simulated = self.value(quantity);
        assert!(range.contains(&simulated), "{quantity}: {simulated}, not in {range:?}");
    }
}

#[test]
fn t2_latencies_are_near_the_papers() {
    let figures = Figures::of("T2");
    assert!(figures.value("1 line, k=7") < figures.value("1 line, binomial"));
    figures.simulated("1 line, k=7, fitted", 0.85 * 16.6..=1.15 * 16.6);
    figures.simulated("1 line, binomial, fitted", 0.85 * 21.6..=1.15 * 21.6);
    for lines in [96, 144, 192] {
        figures.simulated(&format!("{lines} lines, k=7 / k=2"), 0.63..=0.80);
    }
    for lines in [96, 192] {
        figures.simulated(&format!("{lines} lines, k=47 / k=7"), 0.9..=1.15);
        figures.simulated(&format!("{lines} lines, k=47 / k=7, no contention"), 0.5..=0.92);
    }
    figures.simulated("3.2a k=47 and k=7, farthest apart from 32 lines on", 1.0..=1.15);
}

#[test]
fn t3_throughputs_are_near_the_model() {
    let figures = Figures::of("T3");
    for k in [2, 7] {
        let what = format!("1 MB, k={k}");
        let model = figures.number(&what, "model");
        figures.simulated(&what, 0.9 * model..=1.1 * model);
    }
    let model = figures.number("1 MB, k=47", "model");
    figures.simulated("1 MB, k=47", 0.75 * model..=0.97 * model);
    figures.simulated("1 MB, k=2 and 7 / scatter-allgather", 2.4..=3.0);
    // The thesis says that there is a drop, but not how large it is.
    for (k, rest) in [(2, 0.74..=0.77), (7, 0.72..=0.75), (47, 0.64..=0.66)] {
        figures.simulated(&format!("97 / 96 lines, k={k}"), rest);
        figures.simulated(&format!("192 / 96 lines, k={k}"), 0.97..=1.1);
    }
}

#[test]
fn t5_formulas_and_the_algorithms_under_their_assumptions() {
    let figures = Figures::of("T5");
    for (what, paper, model_within, simulated_within) in [
        ("throughput, k=2", 35.22, 0.001, 0.02),
        ("throughput, k=7", 34.30, 0.001, 0.02),
        ("throughput, k=47", 35.88, 0.001, 0.02),
        ("throughput, scatter-allgather", 13.38, 0.02, 0.03),
    ] {
        let error = figures.number(what, "model") / paper - 1.0;
        assert!(error.abs() <= model_within, "{what}: {error}");
        figures
            .simulated(what, (1.0 - simulated_within) * paper..=(1.0 + simulated_within) * paper);
    }
    // Figure 4.2: without contention, a simulated put or get takes the time of its formula.
    figures.simulated("4.2 simulated and formulas, farthest apart", 1.0..=1.001);
    for what in ["get", "put"] {
        // The thesis took the machine's parameters from this figure.
        let ratio = figures.number(&format!("4.2 {what}, 128 lines, 9 routers / 1"), "fitted");
        assert!((1.25..=1.35).contains(&ratio), "{what}: {ratio}");
    }
}

/// The slowest of 48 puts is a known miss: in the thesis it takes over four times as long as the
/// fastest.
#[test]
fn t7_pressure_on_one_buffer_slows_puts() {
    let figures = Figures::of("T7");
    for (name, slowest) in [("gets of 128 lines", 2.0..=10.0), ("puts of 1 line", 2.3..=2.6)] {
        figures.simulated(&format!("{name}, 24 cores, mean / one's"), 0.95..=1.1);
        figures.simulated(&format!("{name}, 48 cores, slowest / least"), slowest);
    }
    figures.simulated("mesh, get over the loaded link / alone", 0.99..=1.05);
    // The test can fail: links of a fifth of the rate are a stress.
    figures.simulated("mesh, the same over links of a fifth of the rate", 1.5..=3.0);
}

/// These tests simulate for half a minute.
mod night {
    use super::Figures;

    /// The asynchronous broadcast of one line is a known miss: it is slower than in the paper.
    #[test]
    fn t4_asynchronous_broadcasts_are_near_the_papers() {
        let figures = Figures::of("T4");
        for (lines, synchronous_us, asynchronous_us) in [(64, 112.7, 118.0), (128, 198.6, 196.7)] {
            let synchronous = format!("{lines} lines, synchronous");
            figures.simulated(&synchronous, 0.9 * synchronous_us..=1.1 * synchronous_us);
            let asynchronous = format!("{lines} lines, asynchronous");
            figures.simulated(&asynchronous, 0.9 * asynchronous_us..=1.1 * asynchronous_us);
        }
        figures.simulated("1 line, synchronous, fitted", 0.85 * 44.1..=1.15 * 44.1);
        figures.simulated("32 lines, synchronous, fitted", 0.85 * 75.8..=1.15 * 75.8);
        figures.simulated("32 lines, asynchronous, fitted", 0.85 * 75.5..=1.15 * 75.5);
        figures.simulated("48 sources, k=47, fair, fitted", 0.9 * 37.4..=1.1 * 37.4);
        // Figure 3.4: more sources increase the throughput at first, then no longer. A large k
        // slows one source down, but serves many.
        let reached = |sources: u32, k: u32| {
            let plural = if sources == 1 { "" } else { "s" };
            figures.value(&format!("{sources} source{plural}, k={k}, fair, fitted"))
        };
        for k in [7, 47] {
            assert!(reached(5, k) > 1.3 * reached(1, k), "k={k}");
            assert!((0.85..=1.15).contains(&(reached(48, k) / reached(5, k))), "k={k}");
        }
        let holds = |what: &str| {
            let figure = figures.0.iter().find(|figure| figure["quantity"] == what).expect(what);
            figure["holds"] == true
        };
        for limit in ["1 source, k=7 / k=2", "1 source, k=47 / k=7", "48 sources, k=47 / k=7"] {
            let of = |name: &str| format!("3.4 {limit}{name}");
            assert!(
                ["", ", fitted", ", fair", ", fair, fitted"].iter().all(|name| holds(&of(name)))
            );
        }
        // Known misses: k=4 reaches less than k=3, and 16 interrupts are served one after the
        // other.
        figures.simulated("3.4 48 sources, k=4 / k=3, fair", 0.9..=1.0);
        figures.simulated("3.3a 16 cores, slowest / fastest", 1.5..=1.7);
        figures.simulated("3.3a 48 cores, slowest", 5800.0..=6100.0);
        figures.simulated("3.3b 48 cores, slowest / fastest", 1.0..=1.05);
        for k in [2, 7] {
            let more = if k == 2 { 7 } else { 47 };
            assert!(
                reached(1, k) > reached(1, more) && reached(48, k) < reached(48, more),
                "k={k}"
            );
        }
    }
}
