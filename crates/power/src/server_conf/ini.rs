//! INI files as Python's `configparser` reads them with its defaults, which the official server does.
//!
//! Names of sections are case-sensitive, keys are not; `=` or `:` ends a key, indented lines continue a value, `%` begins an
//! interpolation, duplicates are refused.

use std::collections::BTreeMap;

/// A file by sections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ini {
    /// Keys in lower case.
    sections: BTreeMap<String, BTreeMap<String, Entry>>,
}

/// A value and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// As written, without interpolation.
    pub(super) value: String,
    /// The line of its key, counted from 1.
    pub(super) line: usize,
}

/// The section whose values every other has too.
const DEFAULT: &str = "DEFAULT";
/// How deep interpolations may refer to each other.
const DEPTH: usize = 10;

/// What is wrong with a file, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IniError {
    pub(super) line: usize,
    pub(super) fault: IniFault,
}

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum IniFault {
    #[error("duplicate section [{0}]")]
    RepeatedSection(String),
    #[error("`{0}` appears before any [section] header")]
    NoSection(String),
    #[error("`{0}` is not a `key: value`")]
    NoValue(String),
    #[error("`{0}` has no key")]
    NoKey(String),
    #[error("duplicate key `{key}` in [{section}]")]
    RepeatedKey { key: String, section: String },
    #[error("values refer to each other without end")]
    Circular,
    #[error("%({0})s names no value")]
    UnknownName(String),
    #[error("a single `%`; write `%%`")]
    SinglePercent,
}

impl Ini {
    /// Reads a file's text.
    pub(super) fn read(text: &str) -> Result<Self, IniError> {
        let mut ini = Self::default();
        let mut section: Option<String> = None;
        let mut open: Option<(String, usize)> = None;
        for (number, raw) in (1..).zip(text.lines()) {
            let wrong = |fault: IniFault| IniError { line: number, fault };
            let line = raw.trim();
            let is_comment = line.starts_with(['#', ';']);
            if line.is_empty() || is_comment {
                continue;
            }
            let indent = raw.chars().take_while(|c| c.is_whitespace()).count();
            if let (Some(section), Some((key, least))) = (&section, &open)
                && indent > *least
            {
                if let Some(entry) = ini.sections.get_mut(section).and_then(|keys| keys.get_mut(key)) {
                    entry.value.push('\n');
                    entry.value.push_str(line);
                }
                continue;
            }
            open = None;
            if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.rsplit_once(']')) {
                let name = name.0.to_owned();
                if name != DEFAULT && ini.sections.contains_key(&name) {
                    return Err(wrong(IniFault::RepeatedSection(name)));
                }
                ini.sections.entry(name.clone()).or_default();
                section = Some(name);
                continue;
            }
            let Some(name) = &section else {
                return Err(wrong(IniFault::NoSection(line.to_owned())));
            };
            let Some(at) = line.find(['=', ':']) else {
                return Err(wrong(IniFault::NoValue(line.to_owned())));
            };
            let key = line[..at].trim().to_lowercase();
            let value = line[at + 1..].trim().to_owned();
            if key.is_empty() {
                return Err(wrong(IniFault::NoKey(line.to_owned())));
            }
            let entry = Entry { value, line: number };
            let keys = ini.sections.entry(name.clone()).or_default();
            if keys.insert(key.clone(), entry).is_some() {
                let section = name.clone();
                return Err(wrong(IniFault::RepeatedKey { key, section }));
            }
            open = Some((key, indent));
        }
        Ok(ini)
    }

    /// The names of the sections but the default one.
    pub(super) fn sections(&self) -> impl Iterator<Item = &str> {
        self.sections
            .keys()
            .map(String::as_str)
            .filter(|name| *name != DEFAULT)
    }

    /// A section's own keys.
    pub(super) fn keys(&self, section: &str) -> impl Iterator<Item = (&str, &Entry)> {
        let keys = self.sections.get(section).into_iter().flatten();
        keys.map(|(key, entry)| (key.as_str(), entry))
    }

    /// The line of a value, where it is there.
    pub(super) fn line(&self, section: &str, key: &str) -> Option<usize> {
        self.entry(section, key).map(|entry| entry.line)
    }

    /// A value after interpolation; `None` where it is missing.
    pub(super) fn get(&self, section: &str, key: &str) -> Result<Option<String>, IniError> {
        let Some(entry) = self.entry(section, key) else {
            return Ok(None);
        };
        let mut value = String::new();
        let done = self.interpolate(section, &entry.value, 0, &mut value);
        done.map_err(|fault| IniError {
            line: entry.line,
            fault,
        })?;
        Ok(Some(value))
    }

    fn entry(&self, section: &str, key: &str) -> Option<&Entry> {
        let key = key.to_lowercase();
        let own = self.sections.get(section)?;
        own.get(&key)
            .or_else(|| self.sections.get(DEFAULT).and_then(|keys| keys.get(&key)))
    }

    fn interpolate(
        &self,
        section: &str,
        value: &str,
        depth: usize,
        into: &mut String,
    ) -> Result<(), IniFault> {
        if depth > DEPTH {
            return Err(IniFault::Circular);
        }
        let mut rest = value;
        while let Some((before, after)) = rest.split_once('%') {
            into.push_str(before);
            if let Some(behind) = after.strip_prefix('%') {
                into.push('%');
                rest = behind;
            } else if let Some((name, behind)) =
                after.strip_prefix('(').and_then(|rest| rest.split_once(")s"))
            {
                let entry = self.entry(section, name);
                let entry = entry.ok_or_else(|| IniFault::UnknownName(name.to_owned()))?;
                self.interpolate(section, &entry.value, depth + 1, into)?;
                rest = behind;
            } else {
                return Err(IniFault::SinglePercent);
            }
        }
        into.push_str(rest);
        Ok(())
    }
}
