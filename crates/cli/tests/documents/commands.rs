//! Blocks of commands. Each line is typed as it stands, in a shell, and ends with 0 unless its comment says
//! `exits with N` or `aborts`. Of a block `console` what follows a command is its output; there `…` stands for anything
//! within a line.

use super::markdown::Block;
use super::scenes::Scene;
use crate::support::Said;

/// Types a block's lines.
///
/// # Panics
///
/// When one ends or prints otherwise than the document says.
pub fn check(block: &Block, scene: &mut Scene) {
    for (number, (line, shown)) in lines(block).into_iter().enumerate() {
        if let (true, Some(name)) = (block.alone && number > 0, &block.scene) {
            *scene = Scene::new(name);
        }
        let said = scene.sh(&scene.here(&line));
        assert!(ends_as_said(&line, said.code), "{}: {line}\n{said:?}", block.place);
        if let Some(shown) = shown {
            let printed = printed(&said);
            assert!(
                fits(&scene.here(&shown), &printed),
                "{}: {line}\nshown:\n{shown}\nprinted:\n{printed}",
                block.place
            );
        }
    }
}

/// Whether the program understands a command that is not run, and with it all that the line types besides.
///
/// # Panics
///
/// When it does not.
pub fn check_words(place: &str, line: &str, scene: &Scene) {
    // Asked for its help, the program judges the words before and does nothing.
    let understood = "lodestep() { command lodestep \"$@\" --help > /dev/null || touch misunderstood; }\n\
        sleep() { :; }; kill() { :; }; cargo() { :; }\n";
    let said = scene.sh(&format!("{understood}{}\nwait", scene.here(line)));
    let misunderstood = scene.world.path().join("misunderstood").exists();
    assert!(said.code == Some(0) && !misunderstood, "{place}: {line}\n{}", said.err);
}

/// The commands of a block, each with the output that is shown.
fn lines(block: &Block) -> Vec<(String, Option<String>)> {
    let commands = block.text.lines().filter(|line| !line.trim().is_empty());
    if block.language == "sh" {
        return commands.map(|line| (line.to_owned(), None)).collect();
    }
    let parts = block.text.strip_prefix("$ ").unwrap_or_else(|| panic!("{}: begin with `$ `", block.place));
    let part = |part: &str| {
        let (line, shown) = part.split_once('\n').unwrap_or((part, ""));
        (line.to_owned(), Some(shown.to_owned()))
    };
    parts.split("\n$ ").map(part).collect()
}

/// Did a line end as its comment says?
fn ends_as_said(line: &str, code: Option<i32>) -> bool {
    let comment = line.split_once(" # ").map_or("", |(_, comment)| comment);
    match comment.split_once("exits with ") {
        Some((_, said)) => {
            said.split(|c: char| !c.is_ascii_digit()).next() == code.map(|code| code.to_string()).as_deref()
        }
        // The shell passes the signal on, or says it as 128 and its number.
        None if comment.contains("aborts") => matches!(code, None | Some(134)),
        None => code == Some(0),
    }
}

fn printed(said: &Said) -> String {
    format!("{}{}", said.out, said.err)
}

/// Does what is printed fit what is shown, line by line?
fn fits(shown: &str, printed: &str) -> bool {
    let (shown, printed): (Vec<_>, Vec<_>) = (shown.lines().collect(), printed.lines().collect());
    shown.len() == printed.len() && shown.iter().zip(printed).all(|(shown, printed)| line_fits(shown, printed))
}

fn line_fits(shown: &str, printed: &str) -> bool {
    let mut parts = shown.split('…');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = printed.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}
