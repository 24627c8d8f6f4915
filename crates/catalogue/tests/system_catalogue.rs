//! Tests of the choice of a run's system: by name, by path, by the device's module, by the generic rule, and the refusals.

use std::fs;

use regatta_catalogue::{catalogue::SystemCatalogue, known, system::SystemRequest};
use regatta_types::{
    Scenario,
    benchmark::Benchmark,
    documents::{DeviceFacts, EngineKind, PowerSetting},
};

const OWN: &str = "schema = 1\nname = 'boat'\ntitle = 'Boat'\n[board]\nmodules = ['p3701-0005']\n[[run]]\nbenchmark = 'digits'\n\
                   scenario = 'Offline'\nsource = { measured = 'today' }\n[run.settings]\ngpu_batch_size = 3\n";

fn orin(module: &str) -> DeviceFacts {
    DeviceFacts {
        module: Some(module.to_owned()),
        dla_cores: 2,
        memory_bytes: 64 << 30,
        ..DeviceFacts::default()
    }
}

fn request(benchmark: &Benchmark, engine: EngineKind) -> SystemRequest<'_> {
    SystemRequest {
        benchmark,
        scenario: Scenario::Offline,
        power: PowerSetting::MaxP,
        engine,
    }
}

#[test]
fn the_devices_module_finds_its_file_and_the_users_own_wins() {
    let own = tempfile::tempdir().unwrap();
    let mut benchmark = known::benchmarks().unwrap().remove(0);
    let of_device = |systems: &SystemCatalogue, facts: &DeviceFacts, benchmark: &Benchmark, engine| {
        let module = facts.module.as_deref();
        let chosen = systems.of_device(module, || facts.clone(), &request(benchmark, engine))?;
        Some((
            chosen.settings.gpu_batch_size?,
            chosen.from.system,
            chosen.from.file,
        ))
    };
    let values = |batch: usize, system: &str, file: &str| Some((batch, system.to_owned(), file.to_owned()));
    let systems = SystemCatalogue::read(Some(own.path())).unwrap();
    let (tensorrt, facts) = (EngineKind::Tensorrt, orin("p3701-0005"));

    // There are no published settings for digits.
    assert_eq!(
        of_device(&systems, &facts, &benchmark, tensorrt).unwrap().1,
        "generic"
    );
    benchmark.aliases.push("resnet50".to_owned());
    let built_in = values(256, "agx-orin-64gb", "configs/systems/agx-orin-64gb.toml");
    assert_eq!(of_device(&systems, &facts, &benchmark, tensorrt), built_in);
    let unknown = orin("p9999-0000");
    assert_eq!(
        of_device(&systems, &unknown, &benchmark, tensorrt).unwrap().1,
        "generic"
    );
    assert_eq!(of_device(&systems, &facts, &benchmark, EngineKind::Tract), None);
    assert_eq!(
        of_device(&systems, &unknown, &benchmark, EngineKind::Sim),
        None,
        "the generic rule is for tensorrt alone"
    );
    let named = systems
        .named("xavier-nx", "none", &request(&benchmark, tensorrt))
        .unwrap();
    assert_eq!(named.settings.gpu_batch_size, Some(64));

    fs::create_dir(own.path().join("systems")).unwrap();
    let path = own.path().join("systems/boat.toml");
    fs::write(&path, OWN).unwrap();
    let systems = SystemCatalogue::read(Some(own.path())).unwrap();
    let file = path.display().to_string();
    assert_eq!(
        of_device(&systems, &facts, &benchmark, tensorrt),
        values(3, "boat", &file)
    );
    let by_path = systems
        .named(&file, "none", &request(&benchmark, tensorrt))
        .unwrap();
    assert_eq!(by_path.from.sha256.as_deref().map(str::len), Some(64));
    assert_eq!((by_path.from.system.as_str(), by_path.from.file), ("boat", file));
}

/// On a device this starts CUDA.
#[test]
fn facts_are_read_only_for_the_generic_rule() {
    let systems = SystemCatalogue::read(None).unwrap();
    let mut benchmark = known::benchmarks().unwrap().remove(0);
    benchmark.aliases.push("resnet50".to_owned());
    let unneeded = || -> DeviceFacts { unreachable!("the module has a file") };
    let chosen = systems.of_device(
        Some("p3701-0005"),
        unneeded,
        &request(&benchmark, EngineKind::Tensorrt),
    );
    assert!(chosen.is_some());
}

#[test]
fn an_unusable_system_is_refused_with_the_reason() {
    let own = tempfile::tempdir().unwrap();
    let systems = SystemCatalogue::read(Some(&own.path().join("not-there"))).unwrap();
    let benchmark = known::benchmarks().unwrap().remove(0);
    let refused = |name: &str| {
        let request = request(&benchmark, EngineKind::Tensorrt);
        systems.named(name, "`none`", &request).unwrap_err().to_string()
    };
    let unknown = refused("agx-orin");
    assert!(
        unknown.starts_with("unknown system `agx-orin`; known are agx-orin-32gb, "),
        "{unknown}"
    );
    assert!(
        unknown.ends_with(", `none`, or the path of a file that ends in .toml"),
        "{unknown}"
    );
    assert_eq!(
        refused("xavier-nx"),
        "configs/systems/xavier-nx.toml has nothing for digits Offline on tensorrt"
    );
    let missing = own.path().join("missing.toml").display().to_string();
    assert_eq!(refused(&missing), format!("cannot read {missing}"));
    fs::create_dir(own.path().join("systems")).unwrap();
    fs::write(own.path().join("systems/broken.toml"), "schema = ").unwrap();
    let error = SystemCatalogue::read(Some(own.path())).unwrap_err().to_string();
    assert!(
        error.ends_with("systems/broken.toml is not a valid system file"),
        "{error}"
    );
}
