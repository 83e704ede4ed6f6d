//! Relative links in Markdown files lead to a file or folder of the tree, and their anchors to a heading.
//!
//! Why: documents move, and nothing else tells that a pointer to one has gone dead. Links to other sites are not
//! followed: they would make the check depend on a network.

use super::tree::{Finding, Tree};

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending(".md") {
        for (line, target) in links(text) {
            findings.extend(fault(tree, path, target).map(|what| Finding::new(path, line, what, "correct the link")));
        }
    }
    findings
}

/// Every link target in the prose, with its line: `[text](target)`, `![image](target)` and `[name]: target`.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut links = Vec::new();
    for (number, line) in prose(text) {
        let code: Vec<_> = line.match_indices('`').map(|(offset, _)| offset).collect();
        let is_code = |offset: usize| code.iter().filter(|tick| **tick < offset).count() % 2 == 1;
        let inline = line.match_indices("](").filter(|(offset, _)| !is_code(*offset));
        links.extend(inline.filter_map(|(offset, _)| Some((number, line[offset + 2..].split_once(')')?.0))));
        if line.starts_with('[') {
            links.extend(line.split_once("]: ").map(|(_, target)| (number, target)));
        }
    }
    links
}

/// The lines outside fenced code, counted from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

fn fault(tree: &Tree, from: &str, target: &str) -> Option<String> {
    // A title may follow: [text](target "title").
    let target = target.split_whitespace().next().unwrap_or_default().trim_matches(['<', '>']);
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let Some(path) = resolve(from, file) else {
        return Some(format!("the link `{target}` leads out of the tree"));
    };
    if !tree.holds(&path) {
        return Some(format!("the link `{target}` leads nowhere"));
    }
    let document = tree.text(&path).filter(|_| path.ends_with(".md"))?;
    let is_there = anchor.is_none_or(|anchor| headings(document).any(|heading| heading == anchor));
    (!is_there).then(|| format!("the link `{target}` names a heading that is not there"))
}

/// The path from the root, or nothing if it leaves the tree. An empty target is the document itself.
fn resolve(from: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(from.to_owned());
    }
    if target.starts_with('/') {
        return None;
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Anchors as code hosts make them: lower case, spaces to hyphens, other marks dropped.
fn headings(document: &str) -> impl Iterator<Item = String> {
    let titles =
        prose(document).filter(|(_, line)| line.starts_with('#')).map(|(_, line)| line.trim_start_matches('#').trim());
    titles.map(|title| {
        let kept = title.to_lowercase();
        kept.chars()
            .filter(|it| it.is_alphanumeric() || " -_".contains(*it))
            .map(|it| if it == ' ' { '-' } else { it })
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(usize, String)> {
        let tree = Tree::of(&[("docs/a.md", text), ("docs/b.md", "# The `fold`, twice\n"), ("src/lib.rs", "")]);
        check(&tree).into_iter().map(|it| (it.line, it.what)).collect()
    }

    #[test]
    fn links_that_lead_somewhere_are_clean() {
        let text = "# Top\n[b](b.md) [b](./b.md#the-fold-twice \"t\") [s](../src) [l](../src/lib.rs#L3) [t](#top) [r](..)\n\
                    [w](https://example.org/x) [m](mailto:a@example.org)\n`[no](link)`\n```\n[no](link)\n```\n[d]: b.md\n";
        assert_eq!(found(text), []);
    }

    #[test]
    fn links_that_lead_nowhere_are_found() {
        for target in ["c.md", "../../b.md", "/docs/b.md", "b.md#gone", "#gone"] {
            assert_eq!(found(&format!("\n[x]({target})\n")).len(), 1, "{target}");
            assert_eq!(found(&format!("\n[x]: {target}\n"))[0].0, 2, "{target}");
        }
    }
}
