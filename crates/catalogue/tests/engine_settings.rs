//! Tests of engine settings through the public functions. Every setting reads back what it writes, alone, together and from a
//! systems file. Errors have golden texts, and the table in docs/harness.md is the declaration's.

use std::{collections::BTreeMap, fs, path::Path};

use proptest::prelude::*;
use regatta_catalogue::{boards, known, system::System};
use regatta_types::{
    documents::{EngineKind, EngineSpec},
    engine_settings::{EngineSettingError, EngineSettings, SETTINGS, Setting, ValueType},
};

fn parse(
    engine: EngineKind,
    values: &BTreeMap<String, String>,
) -> Result<EngineSettings, EngineSettingError> {
    EngineSettings::parse(
        engine,
        values.iter().map(|(name, text)| (name.as_str(), text.as_str())),
    )
}

fn texts(settings: &EngineSettings) -> BTreeMap<String, String> {
    let texts = settings
        .iter()
        .map(|(setting, value)| (setting.name.to_owned(), value.to_string()));
    texts.collect()
}

/// Valid values of a setting as text.
fn valid(setting: &'static Setting) -> BoxedStrategy<String> {
    match setting.value_type {
        // Fields have at most 64 bits.
        ValueType::Integer { min, max, .. } => (min..=max).prop_map(|number| number.to_string()).boxed(),
        ValueType::Number { min, max, .. } => (min..=max).prop_map(|number| number.to_string()).boxed(),
        ValueType::Boolean => any::<bool>().prop_map(|value| value.to_string()).boxed(),
        ValueType::Word(words) => proptest::sample::select(words).prop_map(str::to_owned).boxed(),
        ValueType::Text(_) => match setting.name {
            "gpus" => prop_oneof![
                Just("all".to_owned()),
                proptest::collection::btree_set(any::<u32>(), 1..4).prop_map(|numbers| {
                    let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                    numbers.join(",")
                })
            ]
            .boxed(),
            "sim_units" => {
                "[a-z][a-z0-9]{0,5}=[0-9]{1,6}\\+[0-9]{1,6}(,dla[01]=[0-9]{1,6}\\+[0-9]{1,6}){0,2}".boxed()
            }
            "sequence_lengths" => proptest::collection::btree_set(1_u32..=1 << 20, 1..17)
                .prop_map(|lengths| {
                    let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
                    lengths.join(",")
                })
                .boxed(),
            "tensorrt_plugins" => {
                "[a-z]{1,8}(/[a-z0-9.]{0,7}[a-z])?(,[a-z]{1,8}/lib[a-z]{1,5}\\.so){0,2}".boxed()
            }
            // A path below the scratch directory.
            "calibration" | "server_model" => "[a-z]{1,8}(/[a-z0-9_]{1,7}\\.cache)?".boxed(),
            "server_address" => (1_u16..).prop_map(|port| format!("127.0.0.1:{port}")).boxed(),
            "server" => prop_oneof![Just("llama-cpp".to_owned()), "/[a-z]{1,8}\\.toml"].boxed(),
            "sim_board" => prop_oneof![
                Just("agx-orin.resnet50".to_owned()),
                "[!-~]([ -~]{0,20}[!-~])?\\.toml",
            ]
            .boxed(),
            _ => "[!-~]([ -~]{0,20}[!-~])?".boxed(),
        },
    }
}

/// Some settings of an engine, with valid values.
fn several() -> impl Strategy<Value = (EngineKind, BTreeMap<String, String>)> {
    proptest::sample::select(&EngineKind::ALL[..]).prop_flat_map(|engine| {
        let settings = Setting::accepted_by(engine).map(|setting| {
            proptest::option::of(valid(setting)).prop_map(|value| Some((setting.name.to_owned(), value?)))
        });
        let settings: Vec<_> = settings.collect();
        settings.prop_map(move |values| (engine, compatible(values.into_iter().flatten().collect())))
    })
}

/// Leaves out what a server that runs already, or one without networks, has no use for.
fn compatible(mut values: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let is_set = |name: &str| values.contains_key(name);
    if is_set("server_address") || values.get("server").is_some_and(|server| server == "llama-cpp") {
        for name in [
            "server_port",
            "server_context",
            "instance_group_count",
            "preferred_batch_size",
            "max_queue_delay_usec",
        ] {
            values.remove(name);
        }
    }
    values
}

proptest! {
    #[test]
    fn written_settings_read_back_equal((engine, values) in several()) {
        let settings = parse(engine, &values).unwrap();
        let written = texts(&settings);
        prop_assert!(written.keys().eq(values.keys()), "{values:?} {written:?}");
        prop_assert_eq!(&parse(engine, &written).unwrap(), &settings);
        prop_assert!(settings.check_engine(engine).is_ok());
        let json = serde_json::to_string(&settings).unwrap();
        prop_assert_eq!(&serde_json::from_str::<EngineSettings>(&json).unwrap(), &settings, "{}", json);
        prop_assert_eq!(serde_json::to_string(&settings).unwrap(), json, "the second writing is the first");
    }

    #[test]
    fn set_values_override_a_fallback((engine, values) in several(), (_, other) in several()) {
        let (settings, fallback) = (parse(engine, &values).unwrap(), parse(engine, &other).unwrap_or_default());
        let merged = texts(&settings.clone().or(fallback.clone()));
        let mut expected = texts(&fallback);
        expected.extend(texts(&settings));
        prop_assert_eq!(merged, expected);
    }

    /// TOML's largest integer has 63 bits.
    #[test]
    fn a_systems_file_holds_the_same_settings((engine, values) in several()) {
        let settings = parse(engine, &values).unwrap();
        let lines: Vec<String> = texts(&settings).into_iter().map(|(name, text)| {
            let bare = match Setting::named(&name).unwrap().value_type {
                ValueType::Integer { .. } => text.parse::<i64>().is_ok(),
                ValueType::Number { .. } | ValueType::Boolean => true,
                ValueType::Word(_) | ValueType::Text(_) => false,
            };
            format!("{name} = {}", if bare { text } else { serde_json::to_string(&text).unwrap() })
        }).collect();
        let too_large = values.iter().any(|(name, text)| {
            matches!(Setting::named(name).unwrap().value_type, ValueType::Integer { .. }) && text.parse::<i64>().is_err()
        });
        let file = format!(
            "schema = 1\nname = 'x'\ntitle = 'X'\n[[run]]\nbenchmark = 'digits'\nscenario = 'Offline'\nengine = '{engine}'\n\
             source = {{ measured = 'today' }}\n[run.settings]\n{}\n", lines.join("\n"));
        match System::from_toml(&file) {
            Ok(system) => prop_assert_eq!(&system.runs[0].settings, &settings),
            Err(error) => prop_assert!(too_large, "{file}\n{error}: {}", std::error::Error::source(&error).unwrap()),
        }
    }

    #[test]
    fn garbage_is_refused_or_reads_back(name in proptest::sample::select(SETTINGS), text in "\\PC{0,12}") {
        let engine = name.engines[0];
        let values = BTreeMap::from([(name.name.to_owned(), text)]);
        match parse(engine, &values) {
            Ok(settings) => prop_assert_eq!(parse(engine, &texts(&settings)).unwrap(), settings),
            Err(error) => prop_assert!(error.to_string().contains(name.name)),
        }
    }
}

#[test]
fn a_value_out_of_range_is_refused_by_every_setting_with_a_range() {
    for setting in SETTINGS {
        let outside: Vec<String> = match setting.value_type {
            ValueType::Integer { min, max, .. } => [min.checked_sub(1), max.checked_add(1)]
                .into_iter()
                .flatten()
                .map(|number| number.to_string())
                .chain([
                    "-1".to_owned(),
                    "0.5".to_owned(),
                    "many".to_owned(),
                    String::new(),
                ])
                .collect(),
            ValueType::Number { min, max, .. } => vec![
                (min - 0.001).to_string(),
                (max + 0.001).to_string(),
                "NaN".to_owned(),
                "inf".to_owned(),
            ],
            ValueType::Boolean | ValueType::Word(_) => {
                vec!["yes".to_owned(), "True".to_owned(), String::new()]
            }
            ValueType::Text(_) => vec![String::new()],
        };
        for text in outside {
            let values = BTreeMap::from([(setting.name.to_owned(), text.clone())]);
            let refused = parse(setting.engines[0], &values).unwrap_err();
            assert_eq!(
                refused.to_string(),
                format!(
                    "the engine setting {} is `{text}`, but must be {}",
                    setting.name, setting.value_type
                )
            );
        }
    }
}

#[test]
fn invalid_setting_values_are_refused_by_name() {
    let refused = |engine, name: &str, value: &str| {
        let values = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        parse(engine, &values).unwrap_err().to_string()
    };
    let messages = [
        refused(EngineKind::Tract, "batch_sise", "8"),
        refused(EngineKind::Tract, "Batch-Size", "8"),
        refused(EngineKind::Tract, "streams_of_consciousness", "8"),
        refused(EngineKind::Tract, "gpu_batch_size", "8"),
        refused(EngineKind::Tensorrt, "gpu_batchsize", "8"),
        refused(EngineKind::Tensorrt, "sim_seed", "1"),
        refused(EngineKind::Tract, "batch_size", "0"),
        refused(EngineKind::Tract, "dispatch", "both"),
        refused(EngineKind::Tract, "timing_priority", "100"),
        refused(EngineKind::Tract, "stall_timeout", "0"),
        refused(EngineKind::Tensorrt, "precision", "fp12"),
        refused(EngineKind::Tensorrt, "workspace_size", "big"),
        refused(EngineKind::Sim, "use_graphs", "yes"),
        refused(EngineKind::Tensorrt, "gpus", "0,0"),
        refused(EngineKind::Sim, "sim_units", "gpu=1"),
        refused(EngineKind::Sim, "sim_jitter", "NaN"),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

/// The form in `spec.json`, drafts and requests.
#[test]
fn documents_have_values_of_their_settings_types() {
    let json = r#"{"kind":"tensorrt","settings":{"gpu_batch_size":64,"use_graphs":true,"precision":"int8","warmup_duration":0.5}}"#;
    let spec: EngineSpec = serde_json::from_str(json).unwrap();
    assert_eq!(
        (spec.settings.gpu_batch_size, spec.settings.use_graphs),
        (Some(64), Some(true))
    );
    assert_eq!(serde_json::to_string(&spec).unwrap(), json);
    let refused = |settings: &str| {
        let json = format!(r#"{{"kind":"tract","settings":{settings}}}"#);
        serde_json::from_str::<EngineSpec>(&json).unwrap_err().to_string()
    };
    let messages = [
        refused(r#"{"batch_size":"8"}"#),
        refused(r#"{"batch_size":0}"#),
        refused(r#"{"batch_size":-1}"#),
        refused(r#"{"batch_size":0.5}"#),
        refused(r#"{"exact_batch":1}"#),
        refused(r#"{"dispatch":"both"}"#),
        refused(r#"{"batch_sise":8}"#),
        refused(r#"{"streams_of_consciousness":8}"#),
        refused(r#"{"gpu_batch_size":8}"#),
    ];
    insta::assert_snapshot!(messages.join("\n"));
}

#[test]
fn a_modelled_board_is_built_in_or_a_file() {
    let check = |board: &str| {
        let settings = EngineSettings::parse(EngineKind::Sim, [("sim_board", board)]).unwrap();
        boards::check(&settings).map_err(|error| error.to_string())
    };
    assert_eq!(check("agx-orin.resnet50"), Ok(()));
    assert_eq!(check("boards/mine.toml"), Ok(()));
    let refused = check("no-such-board").unwrap_err();
    assert!(
        refused.contains("sim_board is `no-such-board`, but must be a modelled board"),
        "{refused}"
    );
}

#[test]
fn every_declaration_agrees_with_itself() {
    let mut names = std::collections::BTreeSet::new();
    for setting in SETTINGS {
        let name = setting.name;
        assert!(names.insert(name), "{name} is declared twice");
        assert!(!setting.doc.is_empty() && !setting.doc.contains('\n'), "{name}");
        assert!(setting.doc.ends_with('.'), "{name}: {}", setting.doc);
        assert!(
            !setting.engines.is_empty() && !setting.scenarios.is_empty(),
            "{name}"
        );
        assert!(
            setting
                .ignored_by
                .iter()
                .all(|engine| !setting.engines.contains(engine)),
            "{name}"
        );
        for rule in setting.search {
            assert!(
                rule.engines.iter().all(|engine| setting.engines.contains(engine)),
                "{name}: a search needs an engine that the setting acts on"
            );
        }
    }
}

#[test]
fn sim_takes_what_every_systems_file_has_for_tensorrt() {
    for system in known::systems().unwrap() {
        for run in &system.runs {
            assert!(
                run.settings.check_engine(EngineKind::Sim).is_ok(),
                "{}",
                system.name
            );
        }
    }
}

/// The table between the marks in docs/harness.md. `REGATTA_UPDATE_DOCS=1` writes it.
#[test]
fn the_documents_table_is_the_declarations() {
    const BEGIN: &str = "<!-- settings: begin -->\n";
    const END: &str = "<!-- settings: end -->";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/harness.md");
    let page = fs::read_to_string(&path).unwrap();
    let begin = page.find(BEGIN).expect("docs/harness.md has the begin mark") + BEGIN.len();
    let end = page.find(END).expect("docs/harness.md has the end mark");
    let declared = declared_table();
    if std::env::var_os("REGATTA_UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{}{declared}{}", &page[..begin], &page[end..])).unwrap();
        return;
    }
    assert_eq!(
        &page[begin..end],
        declared,
        "docs/harness.md differs from crates/types/src/engine_settings/declaration.rs; hint: REGATTA_UPDATE_DOCS=1 cargo \
         nextest run -p regatta-catalogue documents"
    );
}

/// The example of docs/extending.md is code of this repository.
#[test]
fn the_documents_example_is_in_the_code() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let page = read("docs/extending.md");
    let section = page.split("## An engine setting").nth(1).unwrap();
    let between = |begin: &str, end: &str| {
        let from = section.split(begin).nth(1).expect(begin);
        from.split(end).next().unwrap().to_owned()
    };
    for (code, source) in [
        (
            between("```rust\n", "```"),
            "crates/types/src/engine_settings/declaration.rs",
        ),
        (
            between("its use is `", "`"),
            "crates/engines/src/tensorrt/settings.rs",
        ),
    ] {
        assert!(
            read(source).contains(&code),
            "{source} does not hold the example:\n{code}"
        );
    }
}

/// The names of all settings, by the engines that they act on.
fn declared_table() -> String {
    let mut names: BTreeMap<Vec<&str>, Vec<String>> = BTreeMap::new();
    for setting in SETTINGS {
        let engines = setting.engines.iter().map(|engine| engine.as_str()).collect();
        names
            .entry(engines)
            .or_default()
            .push(format!("`{}`", setting.name));
    }
    let mut table = String::from("| engines | settings |\n|---|---|\n");
    for (engines, names) in names {
        table.push_str(&format!("| {} | {} |\n", engines.join(", "), names.join(", ")));
    }
    table
}
