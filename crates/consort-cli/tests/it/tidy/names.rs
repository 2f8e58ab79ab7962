//! Names of files and modules.

use super::{
    Tree, assert_none, assert_one,
    sources::{declared_modules, rust_files},
    tree, workspace,
};

const FORBIDDEN_NAMES: [&str; 7] =
    ["util", "utils", "common", "helper", "helpers", "manager", "misc"];

fn forbidden_names(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, text) in rust_files(tree) {
        let mut parts = path.trim_end_matches(".rs").split('/');
        if parts.any(|part| FORBIDDEN_NAMES.contains(&part)) {
            complaints.push(format!("{path}: named after nothing it does"));
        }
        for module in declared_modules(text) {
            if FORBIDDEN_NAMES.contains(&module) {
                complaints.push(format!("{path}: module `{module}` is named after nothing"));
            }
        }
    }
    complaints
}

#[test]
fn modules_are_named_after_what_they_do() {
    assert_none(&forbidden_names(&workspace()));
    for name in FORBIDDEN_NAMES {
        assert_one(&forbidden_names(&tree([(&format!("crates/x/src/{name}.rs"), "")])), name);
        assert_one(&forbidden_names(&tree([(&format!("crates/x/src/{name}/a.rs"), "")])), name);
        let inline = format!("pub mod {name} {{}}");
        assert_one(&forbidden_names(&tree([("crates/x/src/a.rs", &inline)])), name);
    }
}
