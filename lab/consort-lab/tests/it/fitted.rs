//! Tests the book-keeping of fitted parameters. A parameter that is moved by a tenth, or a switch
//! that is flipped, must move the figures that its machine's description names for it. It must not
//! move any other figure of a paper by more than 2 %.

use std::collections::BTreeMap;

use consort_lab::claims::CLAIMS;
use consort_sim::machines::Machine;
use serde_json::Value;
use toml::Table;

use super::objects;

/// The machines with fitted parameters.
const MACHINES: [&str; 3] = ["barcelona-x8", "opteron-6176-x4", "scc"];
/// The smallest movement that is not due to rounding.
const LEAST: f64 = 2e-4;
/// A figure that moves by more than this depends on the parameter.
const MOST: f64 = 0.02;

/// Simulated values of the papers' figures, by their ids and by the names of their variants.
type Values = BTreeMap<(String, String), f64>;

/// Returns the figures of some claims on a machine, with a change if there is one.
fn values(claims: &[&str], machine: &str, change: &str) -> Values {
    let line = format!("reproduce {} --budget 0 --json {change}", claims.join(" "));
    let value = |object: &Value| {
        let text = |key: &str| Some(object[key].as_str()?.to_owned());
        let value = object["simulated"].as_f64().or(object["fitted"].as_f64());
        Some(((text("figure")?, text("quantity")?), value?))
    };
    let of_machine = |object: &&Value| object["machine"] == machine;
    objects(&line).iter().filter(of_machine).filter_map(value).collect()
}

/// Returns a value that differs by a tenth, the next whole number, or the other position of a
/// switch.
fn moved(value: &toml::Value) -> toml::Value {
    match value {
        toml::Value::Boolean(is_on) => toml::Value::Boolean(!is_on),
        toml::Value::Integer(number) => toml::Value::Integer(number + (number + 9) / 10),
        toml::Value::Float(number) => toml::Value::Float(1.1 * number),
        other => panic!("{other} is neither a number nor a switch"),
    }
}

/// Returns the value of a parameter in a machine's description.
fn value_of(machine: &str, parameter: &str) -> toml::Value {
    let (_, text) = Machine::description(machine).expect(machine);
    let document: Table = text.parse().expect("a description is TOML");
    let step = |value: toml::Value, key: &str| match key.parse::<usize>() {
        Ok(index) => value[index].clone(),
        Err(_) => value[key].clone(),
    };
    parameter.split('.').fold(toml::Value::Table(document), step)
}

/// Checks a parameter by the figures of these claims. Returns the figures that it moves, although
/// they are not named as fitted to it.
#[track_caller]
fn check(
    machine: &str,
    parameter: &str,
    figures: &[String],
    claims: &[&str],
    as_it_is: &Values,
) -> Vec<String> {
    let new = moved(&value_of(machine, parameter));
    let values = values(claims, machine, &format!("--set {machine}.{parameter}={new}"));
    let mut movements = BTreeMap::<&str, f64>::new();
    for (key, old) in as_it_is {
        let new = values.get(key).copied().unwrap_or(f64::INFINITY);
        let movement = if new == *old { 0.0 } else { (new / old - 1.0).abs() };
        let most = movements.entry(&key.0).or_default();
        *most = most.max(movement);
    }
    let is_of = |id: &str| claims.iter().any(|claim| id.starts_with(&format!("{claim}.")));
    for figure in figures.iter().filter(|figure| is_of(figure)) {
        let movement = movements.get(&**figure);
        assert!(
            movement.is_some_and(|&movement| movement > LEAST),
            "{machine}: {parameter} = {new} does not move {figure}: {movement:?}"
        );
    }
    let is_unnamed = |&(figure, movement): &(&str, f64)| {
        movement > MOST && !figures.iter().any(|named| named == figure)
    };
    let tell = |(figure, movement)| {
        format!("{machine}: {parameter} = {new} moves {figure} by {:.1} %", 100.0 * movement)
    };
    movements.into_iter().filter(is_unnamed).map(tell).collect()
}

/// Checks all fitted parameters of a machine by some claims, or else by all that have figures on
/// it.
fn check_all(machine: &str, some: Option<&str>) {
    let on_it = CLAIMS.iter().filter(|claim| {
        let has_figures = claim.figures().any(|figure| figure.paper(machine).is_some());
        has_figures && some.is_none_or(|id| id == claim.id)
    });
    let claims: Vec<&str> = on_it.map(|claim| claim.id).collect();
    let as_it_is = values(&claims, machine, "");
    assert!(!as_it_is.is_empty(), "{claims:?} on {machine}");
    let fitted = Machine::find(machine).expect(machine).provenance.fitted;
    let unnamed: Vec<String> = fitted
        .iter()
        .flat_map(|(parameter, figures)| check(machine, parameter, figures, &claims, &as_it_is))
        .collect();
    assert!(unnamed.is_empty(), "figures that are not named as fitted to: {unnamed:#?}");
}

#[test]
fn machines_with_fitted_parameters_are_checked() {
    let is_fitted = |name: &&str| !Machine::find(name).expect(name).provenance.fitted.is_empty();
    assert_eq!(Machine::shipped().filter(is_fitted).collect::<Vec<_>>(), MACHINES);
}

/// More parameters could fit anything.
#[test]
fn few_parameters_are_fitted() {
    let fitted = |name| Machine::find(name).expect(name).provenance.fitted;
    let of_all: usize = Machine::shipped().map(|name| fitted(name).len()).sum();
    assert!(of_all <= 8, "{of_all} fitted parameters");
}

/// A witness for the others, which take longer.
#[test]
fn pressure_on_a_buffer_depends_on_its_fitted_parameters_alone() {
    check_all("scc", Some("T7"));
}

/// Each parameter means simulating all claims on its machine once more.
mod night {
    use super::check_all;

    #[test]
    fn fitted_parameters_of_barcelona_move_their_figures_alone() {
        check_all("barcelona-x8", None);
    }

    #[test]
    fn fitted_parameters_of_the_opteron_move_their_figures_alone() {
        check_all("opteron-6176-x4", None);
    }

    #[test]
    fn fitted_parameters_of_the_scc_move_their_figures_alone() {
        check_all("scc", None);
    }
}
