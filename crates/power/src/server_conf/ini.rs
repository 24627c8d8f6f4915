//! INI files as Python's `configparser` reads them with its defaults, which the official server does.
//!
//! Names of sections are case-sensitive, keys are not; `=` or `:` ends a key, indented lines continue a value, `%` begins an
//! interpolation, what is given twice is refused.

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

/// What is wrong with a file: line and reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IniError {
    pub(super) line: usize,
    pub(super) reason: String,
}

impl Ini {
    /// Reads a file's text.
    pub(super) fn read(text: &str) -> Result<Self, IniError> {
        let mut ini = Self::default();
        let mut section: Option<String> = None;
        let mut open: Option<(String, usize)> = None;
        for (number, raw) in (1..).zip(text.lines()) {
            let fault = |reason: String| IniError { line: number, reason };
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
                    return Err(fault(format!("duplicate section [{name}]")));
                }
                ini.sections.entry(name.clone()).or_default();
                section = Some(name);
                continue;
            }
            let Some(name) = &section else {
                return Err(fault(format!("`{line}` appears before any [section] header")));
            };
            let Some(at) = line.find(['=', ':']) else {
                return Err(fault(format!("`{line}` is not `key: value`")));
            };
            let key = line[..at].trim().to_lowercase();
            let value = line[at + 1..].trim().to_owned();
            if key.is_empty() {
                return Err(fault(format!("`{line}` has no key")));
            }
            let entry = Entry { value, line: number };
            let keys = ini.sections.entry(name.clone()).or_default();
            if keys.insert(key.clone(), entry).is_some() {
                return Err(fault(format!("duplicate key `{key}` in [{name}]")));
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
        done.map_err(|reason| IniError {
            line: entry.line,
            reason,
        })?;
        Ok(Some(value))
    }

    fn entry(&self, section: &str, key: &str) -> Option<&Entry> {
        let key = key.to_lowercase();
        let own = self.sections.get(section)?;
        own.get(&key)
            .or_else(|| self.sections.get(DEFAULT).and_then(|keys| keys.get(&key)))
    }

    fn interpolate(&self, section: &str, value: &str, depth: usize, into: &mut String) -> Result<(), String> {
        if depth > DEPTH {
            return Err("values refer to each other without end".to_owned());
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
                let entry = entry.ok_or_else(|| format!("%({name})s names no value"))?;
                self.interpolate(section, &entry.value, depth + 1, into)?;
                rest = behind;
            } else {
                return Err("a single `%`; write `%%`".to_owned());
            }
        }
        into.push_str(rest);
        Ok(())
    }
}
