//! The fenced blocks of the documents. A block's info string says, after the language, how it is tested:
//!
//! - `scene=NAME`: the [scene](super::scenes) that begins with it; without one the scene before goes on.
//! - `alone`: its lines are alternatives, and each is typed in a scene of its own.
//! - `no-run "reason"`: it is not run, and why. What it types still has to be understood.

use std::path::Path;

/// A fenced block.
#[derive(Debug)]
pub struct Block {
    /// Where it begins: `docs/tools.md:15`.
    pub place: String,
    /// The first word of its info string.
    pub language: String,
    /// The scene that it begins.
    pub scene: Option<String>,
    /// Are its lines alternatives?
    pub alone: bool,
    /// Why it is not run.
    pub no_run: Option<String>,
    /// What stands between the fences.
    pub text: String,
}

impl Block {
    /// From the line of its opening fence.
    ///
    /// # Panics
    ///
    /// At an info string that means nothing.
    fn new(place: String, info: &str) -> Self {
        let (words, no_run) = match info.split_once(" no-run ") {
            Some((words, reason)) => {
                let reason = reason.strip_prefix('"').and_then(|reason| reason.strip_suffix('"'));
                let reason = reason.filter(|reason| !reason.is_empty());
                (words, Some(reason.unwrap_or_else(|| panic!("{place}: write no-run \"reason\"")).to_owned()))
            }
            None => (info, None),
        };
        let mut words = words.split_whitespace();
        let language = words.next().unwrap_or_default().to_owned();
        let mut block = Self { place, language, scene: None, alone: false, no_run, text: String::new() };
        for word in words {
            match word.split_once('=') {
                Some(("scene", name)) => block.scene = Some(name.to_owned()),
                None if word == "alone" => block.alone = true,
                _ => panic!("{}: `{word}` means nothing in an info string", block.place),
            }
        }
        block
    }
}

/// The blocks of a document, in its order.
///
/// # Panics
///
/// At a fence that no one closes, is indented, or has an info string that means nothing.
pub fn blocks(name: &str, text: &str) -> Vec<Block> {
    let (mut blocks, mut open) = (Vec::new(), None::<Block>);
    for (number, line) in text.lines().enumerate() {
        let place = format!("{name}:{}", number + 1);
        assert!(line.starts_with("```") || !line.trim_start().starts_with("```"), "{place}: an indented fence");
        match (line.strip_prefix("```"), &mut open) {
            (Some(info), None) => open = Some(Block::new(place, info)),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{name}: the last fence is not closed");
    blocks
}

/// The code in a document's running text and tables that types a command: `lodestep …` between backticks.
pub fn commands_in_text(text: &str) -> Vec<String> {
    let mut inside = false;
    let prose = text.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        inside ^= is_fence;
        !inside && !is_fence
    });
    let prose = prose.collect::<Vec<_>>().join(" ");
    let code = prose.split('`').skip(1).step_by(2);
    code.filter(|code| code.starts_with("lodestep ")).map(str::to_owned).collect()
}

/// The documents that people read, by name: the README and all of docs/.
pub fn documents(root: &Path) -> Vec<(String, String)> {
    let pages = std::fs::read_dir(root.join("docs")).expect("docs").map(|entry| entry.expect("an entry").file_name());
    let pages =
        pages.map(|name| format!("docs/{}", name.to_str().expect("a name"))).filter(|name| name.ends_with(".md"));
    let mut names: Vec<String> = pages.chain(["README.md".to_owned()]).collect();
    names.sort();
    let read = |name: String| (name.clone(), std::fs::read_to_string(root.join(name)).expect("a document"));
    names.into_iter().map(read).collect()
}
