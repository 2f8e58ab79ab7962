//! The code in the guides of `docs/` is the code that is tested here.

/// A guide, its text, and the files with its code.
const GUIDES: [(&str, &str, &str); 2] = [
    (
        "adding-an-algorithm.md",
        include_str!("../../../../docs/adding-an-algorithm.md"),
        concat!(
            include_str!("../../../../crates/consort-cli/examples/own_algorithm/line.rs"),
            include_str!("../../../../crates/consort-cli/examples/own_algorithm/main.rs"),
            include_str!("outside_algorithm.rs")
        ),
    ),
    (
        "adding-a-fabric.md",
        include_str!("../../../../docs/adding-a-fabric.md"),
        concat!(
            include_str!("toy_fabric.rs"),
            include_str!("toy_world.rs"),
            include_str!("toy.rs")
        ),
    ),
];

/// Returns the Rust blocks of a Markdown text.
fn blocks(text: &str) -> Vec<&str> {
    let after = text.split("```rust\n").skip(1);
    after.map(|rest| rest.split_once("```").map_or(rest, |(block, _)| block)).collect()
}

/// Returns the first block of a guide that is not part of the code.
fn stranger<'g>(guide: &'g str, code: &str) -> Option<&'g str> {
    blocks(guide).into_iter().find(|block| !code.contains(block))
}

#[test]
fn guide_code_matches_tested_code() {
    for (name, guide, code) in GUIDES {
        assert!(blocks(guide).len() >= 3, "{name} shows its code");
        assert_eq!(stranger(guide, code), None, "{name} shows what is not tested");
    }
}

#[test]
fn untested_guide_code_is_found() {
    let guide = "A\n```rust\nfn a() {}\n```\nB\n```sh\nls\n```\n```rust\nfn b() {}\n```\n";
    assert_eq!(blocks(guide), ["fn a() {}\n", "fn b() {}\n"]);
    assert_eq!(stranger(guide, "fn b() {}\nfn a() {}\n"), None);
    assert_eq!(stranger(guide, "fn a() {}\n"), Some("fn b() {}\n"));
}
