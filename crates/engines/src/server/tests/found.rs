//! Tests of runs on a server that runs already: a made-up one, which a test starts as a user does.

use std::{net::TcpListener, process::Child};

use super::{
    probes::{disturb, driver, evidence},
    *,
};

/// A server that the runs do not start. It ends with the test.
struct UserServer {
    process: Child,
    port: u16,
}

impl UserServer {
    fn start(bench: &Bench, mode: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        Self::start_at(bench, mode, port)
    }

    /// Starts a server and waits until it listens.
    fn start_at(bench: &Bench, mode: &str, port: u16) -> Self {
        let process = Command::new("python3")
            .arg(bench.dir.path().join("probed.py"))
            .arg(port.to_string())
            .arg(bench.dir.path().join("model"))
            .env("MODE", mode)
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(20),
                "the server does not listen"
            );
            thread::sleep(Duration::from_millis(20));
        }
        Self { process, port }
    }

    fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn restart(&mut self, bench: &Bench) {
        self.stop();
        *self = Self::start_at(bench, "", self.port);
    }
}

impl Drop for UserServer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Configures a run on the server at a port.
fn configure(bench: &Bench, port: u16, further: &[(&str, &str)]) -> Result<ServerBackend, String> {
    let address = format!("127.0.0.1:{port}");
    let settings = [&[("server_address", address.as_str())], further].concat();
    bench.configure_with(&driver(bench, ""), &settings)
}

fn load(bench: &Bench, port: u16, further: &[(&str, &str)]) -> Result<(ServerBackend, Loaded), String> {
    let backend = configure(bench, port, further)?;
    let loaded = bench.load_backend(&backend, 1)?;
    Ok((backend, loaded))
}

fn end(backend: &ServerBackend) -> Result<Vec<String>, String> {
    backend.end_run().map_err(|error| chain(&error))
}

#[test]
fn several_runs_use_one_server_and_leave_it_running() {
    let bench = Bench::new();
    driver(&bench, "");
    let server = UserServer::start(&bench, "");
    let pid = server.process.id();
    for further in [&[][..], &[("server_model", "model")]] {
        let (backend, mut loaded) = load(&bench, server.port, further).unwrap();
        assert_eq!(query(&mut loaded).unwrap().0, [6, 7, 8]);
        assert_eq!(end(&backend), Ok(Vec::new()));
        let model = bench.dir.path().join("model").display().to_string();
        assert_eq!(
            loaded.description.runs_on,
            format!(
                "{} at 127.0.0.1:{} with {model}",
                program_name(&bench),
                server.port
            )
        );
        drop((loaded, backend));
        assert!(is_running(&pid.to_string()));
        let evidence = evidence(&bench);
        assert_eq!(
            evidence["found_at"],
            format!("127.0.0.1:{}", server.port),
            "{evidence}"
        );
        assert_eq!(evidence["pid"], pid, "{evidence}");
        assert!(evidence["start_ticks"].as_u64().unwrap() > 0, "{evidence}");
        assert_eq!(evidence["command"][2], server.port.to_string(), "{evidence}");
        assert_eq!(
            evidence["program_sha256"].as_str().unwrap().len(),
            64,
            "{evidence}"
        );
        assert_eq!(evidence["is_model_stated"], true, "{evidence}");
        assert_eq!(evidence["model"], model, "{evidence}");
        assert_eq!(evidence["model_sha256"].as_str().unwrap().len(), 64, "{evidence}");
    }
    assert!(!bench.dir.path().join("server.log").exists());

    // The hash is then that of another content.
    let model = fs::File::options()
        .write(true)
        .open(bench.dir.path().join("model"))
        .unwrap();
    let usual = model.metadata().unwrap().modified().unwrap();
    model.set_modified(usual + Duration::from_secs(60)).unwrap();
    let (backend, mut loaded) = load(&bench, server.port, &[]).unwrap();
    query(&mut loaded).unwrap();
    let warnings = end(&backend).unwrap();
    assert!(
        warnings[0].starts_with("the model's file was changed after the server was started"),
        "{warnings:?}"
    );
    assert_eq!(evidence(&bench)["is_model_changed"], true);
    model.set_modified(usual).unwrap();
    drop((loaded, backend));

    let (backend, mut loaded) = load(&bench, server.port, &[]).unwrap();
    let (other, mut other_loaded) = load(&bench, server.port, &[]).unwrap();
    query(&mut loaded).unwrap();
    query(&mut other_loaded).unwrap();
    for run in [backend, other] {
        let warnings = end(&run).unwrap();
        assert!(
            warnings[0].ends_with("another client may have been served"),
            "{warnings:?}"
        );
    }
}

/// The name of the program that `python3` is.
fn program_name(bench: &Bench) -> String {
    let program = evidence(bench)["program"].as_str().unwrap().to_owned();
    program.rsplit('/').next().unwrap().to_owned()
}

#[test]
fn a_server_that_was_started_again_or_has_ended_fails_the_run() {
    let bench = Bench::new();
    driver(&bench, "");
    let mut server = UserServer::start(&bench, "");
    let (backend, mut loaded) = load(&bench, server.port, &[]).unwrap();
    query(&mut loaded).unwrap();
    server.restart(&bench);
    // The new one answers as well.
    query(&mut loaded).unwrap();
    let error = end(&backend).unwrap_err();
    assert!(
        error.contains("was started again during the run; the run has not started it"),
        "{error}"
    );
    // Another run begins with the new one.
    let (backend, mut loaded) = load(&bench, server.port, &[]).unwrap();
    query(&mut loaded).unwrap();
    assert_eq!(end(&backend), Ok(Vec::new()));
    server.process.kill().unwrap();
    // The test has not waited for it, so the system still has its number.
    let error = query(&mut loaded).unwrap_err();
    assert!(
        error.contains("the server has ended; the run has not started it"),
        "{error}"
    );
    let error = end(&backend).unwrap_err();
    assert!(error.contains("the server has ended"), "{error}");
}

#[test]
fn counters_of_a_found_server_show_a_restart_too() {
    let bench = Bench::new();
    driver(&bench, "");
    let server = UserServer::start(&bench, "restarted");
    let (backend, _loaded) = load(&bench, server.port, &[]).unwrap();
    disturb(&bench);
    let error = end(&backend).unwrap_err();
    assert!(error.contains("was started again during the run"), "{error}");
}

#[test]
fn servers_that_cannot_be_used_are_explained() {
    let bench = Bench::new();
    driver(&bench, "");
    let closed = TcpListener::bind(("127.0.0.1", 0))
        .unwrap()
        .local_addr()
        .unwrap()
        .port();
    let error = load(&bench, closed, &[]).err().unwrap();
    assert!(
        error.contains(&format!(
            "no server listens at 127.0.0.1:{closed}; hint: start it and wait until it listens"
        )),
        "{error}"
    );
    let server = UserServer::start(&bench, "other");
    let error = load(&bench, server.port, &[("server_model", "model")])
        .err()
        .unwrap();
    assert!(error.contains("another model, /models/other"), "{error}");
    let error = configure(&bench, server.port, &[("server_context", "64")])
        .err()
        .unwrap();
    assert!(
        error.contains("server_context and server_address exclude each other"),
        "{error}"
    );
    let error = bench
        .configure_with(&driver(&bench, ""), &[("instance_group_count", "2")])
        .err()
        .unwrap();
    assert!(
        error.contains(
            "instance_group_count has no effect with the server's driver: only a driver with `kserve`"
        ),
        "{error}"
    );
    let settings = [("server_model", "model"), ("server_address", "127.0.0.1:1")];
    let settings = EngineSettings::parse(EngineKind::Server, settings).unwrap();
    let settings = EngineSettings {
        server: Some(driver(&bench, "").display().to_string()),
        ..settings
    };
    let error = ModelServer::start(&settings, Some(bench.dir.path()), bench.dir.path())
        .err()
        .unwrap();
    assert!(
        chain(&error).contains("hint: `regatta endpoints run --url`"),
        "{error}"
    );
}
