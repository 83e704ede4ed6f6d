//! A table of a parsed file, read key by key.
//!
//! It knows which keys it was asked for; [`Table::close`] names the others.

use std::cell::RefCell;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::faults::Faults;
use super::foreign;
use super::names::{instead, nearest, shown};
use super::reader::Item;

/// A table whose keys are read one by one.
pub(super) struct Table<'a> {
    /// As people write it: `tools.charge`; empty for the whole file.
    pub name: String,
    /// The byte of its key or header.
    pub at: usize,
    /// Where faults go.
    pub faults: &'a Faults<'a>,
    kind: &'static str,
    entries: Vec<(&'a str, Item<'a>)>,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> Table<'a> {
    /// The whole file; `kind` chooses what is said of unknown keys.
    pub fn root(kind: &'static str, table: &'a DeTable<'a>, faults: &'a Faults<'a>) -> Self {
        #[cfg(test)]
        super::asked::note("", super::asked::Question::Begin);
        Self::new(String::new(), 0, kind, table, faults)
    }

    /// A table under a key; `kind` chooses what is said of unknown keys.
    pub fn new(name: String, at: usize, kind: &'static str, table: &'a DeTable<'a>, faults: &'a Faults<'a>) -> Self {
        let entry = |(key, value): (&'a Spanned<DeString<'a>>, &'a Spanned<DeValue<'a>>)| {
            let text: &'a str = key.get_ref();
            (text, Item::new(name_in(&name, text), key.span().start, value, faults))
        };
        let mut entries: Vec<_> = table.iter().map(entry).collect();
        // The parser's map is sorted by key; the file's order is that of the places.
        entries.sort_by_key(|(_, item)| item.at);
        Self { name, at, faults, kind, entries, asked: RefCell::default() }
    }

    /// The value of a key, if it is there.
    pub fn get(&self, key: &'static str) -> Option<Item<'a>> {
        #[cfg(test)]
        super::asked::note(&self.name_of(key), super::asked::Question::Key);
        self.asked.borrow_mut().push(key);
        self.entries.iter().find(|(name, _)| *name == key).map(|(_, item)| item.clone())
    }

    /// The value of a key that has to be there; `example` shows how it is written.
    pub fn need(&self, key: &'static str, example: &str) -> Option<Item<'a>> {
        let item = self.get(key);
        if item.is_none() {
            self.faults.add(self.at, format!("{} has no `{key}`", self.title()), format!("add `{example}`"));
        }
        item
    }

    /// Every entry in the order of the file, for tables whose keys are names that the file chooses.
    pub fn entries(&self) -> &[(&'a str, Item<'a>)] {
        &self.entries
    }

    /// Is the key there? Does not count as being asked for.
    pub fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|(name, _)| *name == key)
    }

    /// Is there a key that is none of these, but was meant to be this one? Does not count as being asked for.
    pub fn has_misspelt(&self, meant: &str, known: &[&str]) -> bool {
        let is_meant = |key: &&str| nearest(key, known.iter().copied()) == Some(meant);
        self.entries.iter().map(|(key, _)| *key).filter(|key| !known.contains(key)).any(|key| is_meant(&key))
    }

    /// Notes every key that nobody asked for.
    pub fn close(&self) {
        #[cfg(test)]
        super::asked::note(&self.name, super::asked::Question::Closed);
        let known = self.asked.borrow();
        for (key, item) in self.entries.iter().filter(|(key, _)| !known.contains(key)) {
            let (what, mend) = foreign::explained(self.kind, key).unwrap_or_else(|| {
                (format!("`{}` is no key of {}", shown(key), self.title()), instead(key, &known, "keys"))
            });
            self.faults.add(item.at, what, mend);
        }
    }

    #[cfg(test)]
    fn name_of(&self, key: &str) -> String {
        name_in(&self.name, key)
    }

    fn title(&self) -> String {
        match self.kind {
            _ if self.name.is_empty() => "the file".to_owned(),
            "policy" | "milestone" => format!("[[{}]]", self.name),
            _ => format!("[{}]", self.name),
        }
    }
}

/// A key's name as people write it.
fn name_in(table: &str, key: &str) -> String {
    if table.is_empty() { shown(key) } else { format!("{table}.{}", shown(key)) }
}
