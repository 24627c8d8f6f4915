//! The schema of a benchmark's file, and the page that documents its fields, are made from the code. Every built-in file keeps to the schema.
//! `REGATTA_UPDATE_DOCS=1` writes both.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "test code")]

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use regatta_test_support::json_schema;
use regatta_types::benchmark::Benchmark;
use serde_json::{Value, json};

const SCHEMA: &str = "coordinator/benchmark.schema.json";
const PAGE: &str = "docs/benchmark-file.md";
const BEGIN: &str = "<!-- fields: begin -->\n";
const END: &str = "<!-- fields: end -->";
const HINT: &str = "differs from crates/types/src/benchmark; hint: REGATTA_UPDATE_DOCS=1 cargo nextest run --workspace documents";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name)
}

fn schema() -> Value {
    let mut schema = serde_json::to_value(schemars::schema_for!(Benchmark)).unwrap();
    schema["title"] = json!("Regatta: the file of a benchmark");
    schema
}

/// Compares a file with what it must be, or writes it.
fn compare(name: &str, written: &str) {
    if std::env::var_os("REGATTA_UPDATE_DOCS").is_some() {
        fs::write(file(name), written).unwrap();
        return;
    }
    let found = fs::read_to_string(file(name)).unwrap_or_default();
    assert!(found == written, "{name} {HINT}");
}

#[test]
fn the_documents_schema_is_the_codes() {
    compare(
        SCHEMA,
        &format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap()),
    );
}

#[test]
fn the_documents_fields_are_the_codes() {
    let page = fs::read_to_string(file(PAGE)).unwrap();
    let begin = page.find(BEGIN).expect("the page has the begin mark") + BEGIN.len();
    let end = page.find(END).expect("the page has the end mark");
    let fields = Fields::new(&schema()).text();
    compare(PAGE, &format!("{}{fields}{}", &page[..begin], &page[end..]));
}

#[test]
fn built_in_files_keep_to_the_schema() {
    let mut schema = schema();
    schema["$defs"]["file"] = schema.clone();
    let mut files = 0;
    for entry in fs::read_dir(file("configs/benchmarks")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let document: Value = toml::from_str(&text).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(
            json_schema::findings(&document, &schema, "file"),
            Vec::<String>::new(),
            "{name}"
        );
        files += 1;
        let mut wrong = document;
        wrong["accuracy"]["metric"] = json!("best");
        wrong["model"]["imput_shape"] = json!([3]);
        let found = json_schema::findings(&wrong, &schema, "file").join("\n");
        assert!(found.contains("accuracy.metric is \"best\""), "{name}: {found}");
        assert!(
            found.contains("model has an unknown `imput_shape`"),
            "{name}: {found}"
        );
    }
    assert!(files >= 10, "{files} files");
}

/// The fields of a schema as Markdown: a section for each table of the file.
struct Fields<'a> {
    schema: &'a Value,
    text: String,
    /// The definitions that have a section, or wait for it.
    seen: BTreeSet<String>,
    /// Sections to write: their heading and schema.
    waiting: Vec<(String, &'a Value)>,
}

impl<'a> Fields<'a> {
    fn new(schema: &'a Value) -> Self {
        Self {
            schema,
            text: String::new(),
            seen: BTreeSet::new(),
            waiting: vec![("## The file itself".to_owned(), schema)],
        }
    }

    fn text(mut self) -> String {
        while !self.waiting.is_empty() {
            let (heading, rules) = self.waiting.remove(0);
            self.section(&heading, rules);
        }
        self.text
    }

    fn section(&mut self, heading: &str, rules: &'a Value) {
        let _ = write!(self.text, "{heading}\n\n");
        if let Some(description) = rules["description"].as_str() {
            let _ = write!(self.text, "{}\n\n", plain(description));
        }
        let path = heading
            .trim_start_matches('#')
            .trim()
            .trim_matches(['`', '[', ']'])
            .to_owned();
        if let Some(variants) = rules["oneOf"].as_array() {
            for variant in variants {
                self.variant(&path, variant);
            }
            return;
        }
        self.table(&path, rules);
    }

    /// One kind of a table whose fields depend on a key.
    fn variant(&mut self, path: &str, rules: &'a Value) {
        let tag = rules["properties"]
            .as_object()
            .unwrap()
            .iter()
            .find(|(_, rule)| rule.get("const").is_some());
        let (key, rule) = tag.expect("a variant has a tag");
        let _ = write!(self.text, "### `{key} = {}`\n\n", rule["const"]);
        let _ = write!(
            self.text,
            "{}\n\n",
            plain(rules["description"].as_str().unwrap_or_default())
        );
        self.table(path, rules);
    }

    fn table(&mut self, path: &str, rules: &'a Value) {
        let Some(properties) = rules["properties"]
            .as_object()
            .filter(|fields| !fields.is_empty())
        else {
            return;
        };
        self.text.push_str("| Field | Value | Meaning |\n|---|---|---|\n");
        let required = rules["required"].as_array().cloned().unwrap_or_default();
        for (name, rule) in properties.iter().filter(|(_, rule)| rule.get("const").is_none()) {
            let value = self.value(&join(path, name), rule);
            let default = match rule.get("default") {
                _ if required.contains(&json!(name)) => "required".to_owned(),
                None | Some(Value::Null) => "optional".to_owned(),
                Some(Value::Array(list)) if list.is_empty() => "optional".to_owned(),
                Some(Value::Object(map)) if map.is_empty() => "optional".to_owned(),
                Some(default) => format!("default `{default}`"),
            };
            let meaning = plain(rule["description"].as_str().unwrap_or_default());
            let _ = writeln!(
                self.text,
                "| `{name}` | {value}; {default} | {meaning}{} |",
                self.choices(rule)
            );
        }
        self.text.push('\n');
    }

    /// Describes the values of a field. Tables get a section of their own.
    fn value(&mut self, path: &str, rule: &'a Value) -> String {
        if let Some(name) = reference(rule) {
            let definition = self.definition(name);
            if words(definition).is_some() {
                return "a word".to_owned();
            }
            if let Some(forms) = forms(definition) {
                return forms;
            }
            if definition.get("properties").is_some() || definition.get("oneOf").is_some() {
                if self.seen.insert(name.to_owned()) {
                    self.waiting.push((format!("## `[{path}]`"), definition));
                }
                return "a table".to_owned();
            }
        }
        match rule["type"].as_str().or_else(|| rule["type"][0].as_str()) {
            Some("array") => {
                let items = self.value(path, &rule["items"]);
                let items = items
                    .strip_prefix("a ")
                    .or_else(|| items.strip_prefix("an "))
                    .unwrap_or(&items);
                match rule["minItems"]
                    .as_u64()
                    .filter(|least| rule["maxItems"].as_u64() == Some(*least))
                {
                    Some(count) => format!("a list of {count} {items}s"),
                    None => format!("a list of {items}s"),
                }
            }
            Some("integer") => "an integer".to_owned(),
            Some("number") => "a number".to_owned(),
            Some("boolean") => "`true` or `false`".to_owned(),
            Some("object") => "a table of texts".to_owned(),
            _ => "a text".to_owned(),
        }
    }

    /// Lists the words that a field takes, with their meaning.
    fn choices(&self, rule: &Value) -> String {
        let inner = if rule["items"].is_object() {
            &rule["items"]
        } else {
            rule
        };
        let found = reference(inner).and_then(|name| words(self.definition(name)));
        let item = |(word, meaning): &(String, String)| {
            format!("`{word}`: {}", plain(meaning).trim_end_matches('.'))
        };
        match found {
            Some(found) => format!(" {}", found.iter().map(item).collect::<Vec<_>>().join("; ")),
            None => String::new(),
        }
    }

    fn definition(&self, name: &str) -> &'a Value {
        let name = name.strip_prefix("#/$defs/").unwrap_or(name);
        self.schema["$defs"].get(name).expect("a definition")
    }
}

/// Returns the definition that a field refers to, also if it is optional.
fn reference(rule: &Value) -> Option<&str> {
    let optional = rule["anyOf"]
        .as_array()
        .and_then(|either| either.iter().find_map(|one| one["$ref"].as_str()));
    rule["$ref"].as_str().or(optional)
}

/// Returns the words of a definition that is a choice of words, with their meanings.
fn words(definition: &Value) -> Option<Vec<(String, String)>> {
    if let Some(list) = definition["enum"].as_array() {
        return list
            .iter()
            .map(|word| Some((word.as_str()?.to_owned(), String::new())))
            .collect();
    }
    let word = |one: &Value| {
        let meaning = one["description"].as_str().unwrap_or_default();
        Some((one["const"].as_str()?.to_owned(), meaning.to_owned()))
    };
    definition["oneOf"].as_array()?.iter().map(word).collect()
}

/// Returns the forms of a field that is a word or a table with one key.
fn forms(definition: &Value) -> Option<String> {
    let forms = definition["oneOf"].as_array()?.iter().map(|one| {
        let key = one["required"].as_array().and_then(|keys| keys.first()?.as_str());
        let is_tagged = key.is_some_and(|key| one["properties"][key].get("const").is_some());
        match (one["const"].as_str(), key) {
            (Some(word), _) => Some(format!("`\"{word}\"`")),
            (None, Some(key)) if !is_tagged => Some(format!("`{{ {key} = \"...\" }}`")),
            _ => None,
        }
    });
    forms.collect::<Option<Vec<_>>>().map(|forms| forms.join(" or "))
}

/// Returns a documentation comment without links and lines, for a cell of a table.
fn plain(text: &str) -> String {
    let mut plain = text.replace('\n', " ").replace('|', "\\|");
    // `[name](path)` and [`name`] are links of the code's documentation.
    while let Some(begin) = plain.find("](") {
        let end = plain[begin..].find(')').map_or(plain.len(), |at| begin + at + 1);
        plain.replace_range(begin..end, "");
        if let Some(open) = plain[..begin].rfind('[') {
            plain.remove(open);
        }
    }
    // Types have `None` where a file has no such field.
    plain
        .replace("[`", "`")
        .replace("`]", "`")
        .replace("`None`", "absent")
}

fn join(path: &str, name: &str) -> String {
    if path == "The file itself" {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
