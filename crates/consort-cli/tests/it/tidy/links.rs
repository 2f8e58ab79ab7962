//! Links between the documents, and the contents of the book.

use std::collections::BTreeMap;

use super::{Tree, assert_none, assert_one, tree, workspace};

/// The pages of the book, and its contents.
const BOOK: &str = "docs/";
const CONTENTS: &str = "docs/SUMMARY.md";

/// Returns the documents whose links are checked. Folders `src` have texts for rustdoc, whose links
/// rustdoc checks.
fn documents(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    let all = tree.iter().map(|(path, text)| (path.as_str(), text.as_str()));
    all.filter(|(path, _)| path.ends_with(".md") && !path.contains("/src/"))
}

/// Returns the lines of a Markdown text outside its code blocks, with their numbers.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_block = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        (!in_block && !is_fence).then_some((index + 1, line))
    })
}

/// Returns a line without its code between backquotes.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("`")
}

/// Returns the targets of the links of a line.
fn targets(line: &str) -> Vec<String> {
    let line = without_code(line);
    let after = line.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')').map(|(target, _)| target.to_owned())).collect()
}

/// Returns the anchors of a document's headings, as forges and mdBook form them.
fn anchors(text: &str) -> Vec<String> {
    let mut seen = BTreeMap::new();
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings
        .map(|(_, line)| {
            let title = line.trim_start_matches('#').trim().to_lowercase();
            let kept = title.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
            let name: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
            let earlier: &mut usize = seen.entry(name.clone()).or_default();
            *earlier += 1;
            if *earlier == 1 { name } else { format!("{name}-{}", *earlier - 1) }
        })
        .collect()
}

/// Returns the path from the root to which a relative link of a document leads.
fn resolved(document: &str, target: &str) -> String {
    let mut parts: Vec<_> = document.split('/').collect();
    parts.pop();
    for part in target.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Checks that each relative link leads to a file or folder, and each anchor to a heading. Links of
/// the book's pages lead to its pages, because the book has nothing else.
fn broken_links(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for (document, text) in documents(tree) {
        for (number, line) in prose(text) {
            let targets = targets(line).into_iter().filter(|target| !target.contains("://"));
            for target in targets {
                let (path, anchor) =
                    target.split_once('#').map_or((&*target, None), |(path, it)| (path, Some(it)));
                let path = match path {
                    "" => document.to_owned(),
                    path => resolved(document, path),
                };
                let folder = format!("{path}/");
                let lacks =
                    |name| tree.get(&path).is_none_or(|it| anchors(it).iter().all(|it| it != name));
                if !tree.contains_key(&path) && !tree.keys().any(|it| it.starts_with(&folder)) {
                    complaints.push(format!("{document}:{number}: there is no `{target}`"));
                } else if document.starts_with(BOOK) && !path.starts_with(BOOK) {
                    complaints.push(format!("{document}:{number}: `{target}` is not in the book"));
                } else if anchor.is_some_and(lacks) {
                    complaints.push(format!("{document}:{number}: no heading is `{target}`"));
                }
            }
        }
    }
    complaints
}

#[test]
fn links_of_documents_resolve() {
    assert_none(&broken_links(&workspace()));
    let other = "# Two `words`, x_y\n## A\n```sh\n# No heading\n```\n## A\n";
    let of = |line: &str| broken_links(&tree([("docs/a.md", line), ("docs/b/c.md", other)]));
    assert_none(&of("[c](b/c.md), [b](./b/), [w](https://x.y/#z)"));
    assert_none(&of("# Top\n[1](b/c.md#two-words-x_y), [2](b/c.md#a), [3](b/c.md#a-1), [4](#top)"));
    assert_none(&of("`[e](e.md)`\n```md\n[e](e.md)\n```"));
    assert_one(&of("\n[e](e.md)"), "docs/a.md:2: there is no `e.md`");
    assert_one(&of("[`e`](../b/c.md)"), "there is no `../b/c.md`");
    assert_one(&of("[f](b/c.md#a-2)"), "docs/a.md:1: no heading is `b/c.md#a-2`");
    assert_one(&of("[g](b/c.md#no-heading)"), "no heading is `b/c.md#no-heading`");
    assert_one(&of("[h](#top)"), "no heading is `#top`");
    let of =
        |page: &str| broken_links(&tree([(page, "[d](../x/d.rs), [x](../x)"), ("x/d.rs", "")]));
    assert_none(&of("y/a.md"));
    assert_eq!(of("docs/a.md").len(), 2);
}

/// Checks that the book has each page of `docs/` exactly once.
fn missing_pages(tree: &Tree) -> Vec<String> {
    let contents = tree.get(CONTENTS).map_or("", |text| &**text);
    let listed = prose(contents).flat_map(|(_, line)| targets(line));
    let listed: Vec<_> = listed.map(|target| resolved(CONTENTS, &target)).collect();
    let pages = documents(tree).map(|(path, _)| path);
    let pages = pages.filter(|path| path.starts_with(BOOK) && *path != CONTENTS);
    let times = |page: &str| listed.iter().filter(|path| *path == page).count();
    pages
        .filter(|page| times(page) != 1)
        .map(|page| format!("{CONTENTS}: lists {page} {} times: list it once", times(page)))
        .collect()
}

#[test]
fn the_book_has_each_page_once() {
    assert_none(&missing_pages(&workspace()));
    let of = |contents: &str| {
        missing_pages(&tree([(CONTENTS, contents), ("docs/a.md", ""), ("docs/b/c.md", "")]))
    };
    assert_none(&of("# Contents\n- [A](a.md)\n- [C](b/c.md)"));
    assert_one(&of("- [A](a.md)\n"), "lists docs/b/c.md 0 times");
    assert_one(&of("- [A](a.md)\n- [C](b/c.md)\n- [C](./b/c.md)"), "lists docs/b/c.md 2 times");
}
