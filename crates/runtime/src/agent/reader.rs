//! A value of a parsed file with its name and place, and its typed readers.
//!
//! Each gives `None` after noting a fault, so that reading can go on.

use std::ops::RangeInclusive;

use toml::Spanned;
use toml::de::DeValue;

use super::faults::Faults;
use super::names::{instead, shown};
use super::table::Table;
use super::{duration, references};

/// A value with its name and place.
#[derive(Clone)]
pub(super) struct Item<'a> {
    /// As people write it: `model.price`.
    pub name: String,
    /// The byte of its key, or of the element of a list.
    pub at: usize,
    /// Where faults go.
    pub faults: &'a Faults<'a>,
    value: &'a Spanned<DeValue<'a>>,
}

impl<'a> Item<'a> {
    /// A value under a key.
    pub fn new(name: String, at: usize, value: &'a Spanned<DeValue<'a>>, faults: &'a Faults<'a>) -> Self {
        Self { name, at, faults, value }
    }

    /// Notes a fault at this value's key.
    pub fn fault(&self, what: impl Into<String>, mend: impl Into<String>) {
        self.faults.add(self.at, what, mend);
    }

    /// The value as it was parsed.
    pub fn value(&self) -> &'a DeValue<'a> {
        self.value.get_ref()
    }

    /// Where a part of the value stands in the file: the value's start if the part is spelled with escapes.
    pub fn place_of(&self, part: &str) -> usize {
        let span = self.value.span();
        let raw = self.faults.text().get(span.clone()).unwrap_or_default();
        raw.find(part).map_or(span.start, |at| span.start + at)
    }

    /// Notes that the value is of the wrong type.
    pub fn wrong(&self, expected: &str) {
        let is = match self.value() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a point",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.fault(format!("`{}` is {is}", self.name), format!("write {expected}"));
    }

    /// A text, whatever is in it; NUL is refused, as no program and no file name can hold it.
    pub fn raw_text(&self) -> Option<&'a str> {
        #[cfg(test)]
        super::asked::note(&self.name, super::asked::Question::Text);
        let Some(text) = self.value().as_str() else {
            self.wrong("a text in quotes");
            return None;
        };
        if text.contains('\0') {
            self.fault(format!("`{}` holds a NUL character", self.name), "take it out");
            return None;
        }
        Some(text)
    }

    /// A text in which references mean nothing and are refused.
    pub fn text(&self) -> Option<String> {
        self.text_with(&references::Allowed::Nothing)
    }

    /// A text in which some references are filled in later.
    pub fn text_with(&self, allowed: &references::Allowed<'_>) -> Option<String> {
        let text = self.raw_text()?;
        let faults = references::check(text, allowed);
        for fault in &faults {
            self.faults.add(self.place_of(&fault.reference), fault.what.clone(), fault.mend.clone());
        }
        faults.is_empty().then(|| text.to_owned())
    }

    /// A text that is not blank.
    pub fn said(&self, allowed: &references::Allowed<'_>) -> Option<String> {
        let text = self.text_with(allowed)?;
        if text.trim().is_empty() {
            self.fault(format!("`{}` is empty", self.name), "say what it is");
            return None;
        }
        Some(text)
    }

    /// One of some words.
    pub fn one_of<T: Copy>(&self, words: &[(&'static str, T)]) -> Option<T> {
        #[cfg(test)]
        super::asked::note(&self.name, super::asked::Question::Words(words.iter().map(|(word, _)| *word).collect()));
        let text = self.text()?;
        if let Some((_, meant)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*meant);
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let mend = match instead(&text, &known, "words") {
            near if near.starts_with("did") => near,
            _ if known.len() == 1 => format!("write \"{}\"", known[0]),
            _ => format!("write one of {}", known.join(", ")),
        };
        self.fault(format!("`{}` can't be \"{}\"", self.name, shown(&text)), mend);
        None
    }

    /// A whole number within bounds.
    pub fn whole(&self, bounds: RangeInclusive<u64>) -> Option<u64> {
        #[cfg(test)]
        super::asked::note(&self.name, super::asked::Question::Whole(*bounds.start(), *bounds.end()));
        let Some(integer) = self.value().as_integer() else {
            self.wrong(&format!("a whole number, such as {}", bounds.start()));
            return None;
        };
        let number = i128::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.and_then(|number| u64::try_from(number).ok()).filter(|number| bounds.contains(number));
        if number.is_none() {
            let (least, most) = (bounds.start(), bounds.end());
            self.fault(format!("`{}` can't be {integer}", self.name), format!("it has to be {least} to {most}"));
        }
        number
    }

    /// True or false.
    pub fn yes_or_no(&self) -> Option<bool> {
        #[cfg(test)]
        super::asked::note(&self.name, super::asked::Question::Truth);
        let truth = self.value().as_bool();
        if truth.is_none() {
            self.wrong("true or false");
        }
        truth
    }

    /// A length of time in milliseconds, within bounds that are given in milliseconds.
    pub fn duration(&self, bounds: RangeInclusive<u64>) -> Option<u64> {
        #[cfg(test)]
        super::asked::note(&self.name, super::asked::Question::Duration(*bounds.start(), *bounds.end()));
        let Some(text) = self.value().as_str() else {
            self.wrong(duration::FORMS);
            return None;
        };
        let Some(ms) = duration::parse(text) else {
            self.fault(format!("`{}`: \"{}\" is no length of time", self.name, shown(text)), duration::mend());
            return None;
        };
        if !bounds.contains(&ms) {
            let (least, most) = (duration::format(*bounds.start()), duration::format(*bounds.end()));
            self.fault(format!("`{}` can't be \"{text}\"", self.name), format!("it has to be {least} to {most}"));
            return None;
        }
        Some(ms)
    }

    /// The elements of a list.
    pub fn list(&self, example: &str) -> Option<Vec<Item<'a>>> {
        #[cfg(test)]
        super::asked::note(&self.name, super::asked::Question::List);
        let Some(array) = self.value().as_array() else {
            self.wrong(&format!("a list, such as {example}"));
            return None;
        };
        let element = |(nth, value): (usize, &'a Spanned<DeValue<'a>>)| Item {
            name: format!("{}[{nth}]", self.name),
            at: value.span().start,
            faults: self.faults,
            value,
        };
        Some(array.iter().enumerate().map(element).collect())
    }

    /// A list of texts; none when one of them is at fault.
    pub fn texts(&self, example: &str, allowed: &references::Allowed<'_>) -> Option<Vec<String>> {
        let read: Vec<Option<String>> = self.list(example)?.iter().map(|item| item.text_with(allowed)).collect();
        read.into_iter().collect()
    }

    /// A program and its arguments: at least one word, the first not empty.
    pub fn argv(&self, allowed: &references::Allowed<'_>) -> Option<Vec<String>> {
        const EXAMPLE: &str = "[\"sh\", \"tools/publish.sh\"]";
        let words = self.texts(EXAMPLE, allowed)?;
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            self.fault(format!("`{}` names no program", self.name), format!("write it and its arguments: {EXAMPLE}"));
            return None;
        }
        Some(words)
    }

    /// A table; `kind` chooses what is said of unknown keys.
    pub fn table(&self, kind: &'static str, expected: &str) -> Option<Table<'a>> {
        #[cfg(test)]
        super::asked::note(&self.name, super::asked::Question::Table);
        let Some(table) = self.value().as_table() else {
            self.wrong(expected);
            return None;
        };
        Some(Table::new(self.name.clone(), self.at, kind, table, self.faults))
    }

    /// The tables of a `[[list]]`.
    pub fn tables(&self, kind: &'static str) -> Vec<Table<'a>> {
        #[cfg(test)]
        super::asked::note(&self.name, super::asked::Question::List);
        let header = format!("[[{}]], with two brackets, once for each", self.name);
        let Some(array) = self.value().as_array() else {
            self.wrong(&header);
            return Vec::new();
        };
        let items = (0..array.len()).map(|_| self.name.clone()).zip(array.iter());
        let items = items.map(|(name, value)| Item { name, at: value.span().start, faults: self.faults, value });
        items.filter_map(|item| item.table(kind, &header)).collect()
    }
}
