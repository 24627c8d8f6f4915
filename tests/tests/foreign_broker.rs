//! Tests with a foreign broker that withholds logs, and forges acknowledgements, commands, states and ends of streams. It can
//! delay a run. It frees nothing on the device, and everything arrives when it is honest again.

#![expect(clippy::expect_used, reason = "test code")]

use std::{fs, path::PathBuf, time::Duration};

use regatta_tests::{Broker, Lab, certificates, eventually, free_port};
use regatta_types::{
    DeviceId, RunId, StreamName,
    documents::{RunPhase, RunState},
};
use regatta_wire::{
    message::{Ack, Command, Message, StateReport, StreamEnd, StreamVerdict},
    topic::{Leaf, Topic},
};
use rumqttc::{Client, MqttOptions, PublishOptions, QoS};
use sha2::Digest as _;

/// A lab on such a broker.
struct Foreign {
    lab: Lab,
    device: DeviceId,
    client: Client,
}

impl Foreign {
    fn start() -> Option<Self> {
        let mut lab = Lab::secure(Broker::Mosquitto)?;
        let settings = lab.workspace().join("regatta.toml");
        let text = fs::read_to_string(&settings).expect("regatta.toml");
        fs::write(&settings, format!("{text}keep_on_device_hours = 0\n")).expect("regatta.toml");
        let door = free_port();
        let place = lab.workspace().join("mosquitto");
        let configuration = format!(
            "user root\npersistence false\nper_listener_settings true\n\
             listener {port} 127.0.0.1\ncafile {place}/ca.pem\ncertfile {place}/server.pem\nkeyfile {place}/server.key\n\
             require_certificate true\nuse_identity_as_username true\nuse_username_as_clientid true\nacl_file {place}/acl\n\
             listener {door} 127.0.0.1\nallow_anonymous true\n",
            port = lab.port,
            place = place.display(),
        );
        fs::write(place.join("mosquitto.conf"), configuration).expect("mosquitto.conf");
        lab.mosquitto.as_mut().expect("this lab has one").restart();
        lab.start_coordinator();
        lab.start_device();
        lab.wait_for_device();
        let (_, device) = certificates::of_device(&lab.state());
        let (client, mut connection) = Client::builder(MqttOptions::new("forger", ("127.0.0.1", door)))
            .capacity(64)
            .build();
        std::thread::spawn(move || {
            for event in connection.iter() {
                if event.is_err() {
                    // The broker is restarted.
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        });
        Some(Self {
            lab,
            device: device.parse().expect("a device's id"),
            client,
        })
    }

    fn say(&self, leaf: Leaf, message: &impl Message) {
        let topic = Topic {
            device: self.device.clone(),
            leaf,
        };
        let frame = message.to_frame().expect("a frame");
        self.client
            .publish(topic.to_string(), frame, PublishOptions::new(QoS::AtLeastOnce))
            .expect("the broker takes it");
    }

    /// Withholds logs from the coordinator, or forwards them.
    fn keep_logs_back(&mut self, kept_back: bool) {
        let place = self.lab.workspace().join("mosquitto");
        let coordinator = if kept_back {
            "topic deny regatta/v1/+/log/+/+\n"
        } else {
            ""
        };
        let access = format!(
            "user coordinator\n{coordinator}topic readwrite regatta/#\npattern readwrite regatta/v1/%u/#\n"
        );
        fs::write(place.join("acl"), access).expect("the access rules");
        self.lab.mosquitto.as_mut().expect("this lab has one").restart();
    }

    fn run_directory(&self, run: &str) -> PathBuf {
        self.lab.state().join("runs").join(run)
    }

    fn phase_on_device(&self, run: &str) -> String {
        let job = fs::read(self.run_directory(run).join("job.json")).unwrap_or_default();
        let job: serde_json::Value = serde_json::from_slice(&job).unwrap_or_default();
        job["state"]["phase"].as_str().unwrap_or_default().to_owned()
    }

    /// Acknowledges every file of a run, with its right length, until the device accepts it.
    fn acknowledge_everything(&self, run: &str) {
        eventually("the device to believe the acknowledgements", 60, || {
            for file in fs::read_dir(self.run_directory(run).join("files")).expect("its files") {
                let file = file.expect("a file");
                let name: StreamName = file.file_name().to_string_lossy().parse().expect("a stream");
                let ack = Ack {
                    stream: name,
                    committed: file.metadata().expect("its length").len(),
                    verdict: Some(StreamVerdict::Equal),
                };
                self.say(Leaf::Ack(id(run)), &ack);
            }
            matches!(self.phase_on_device(run).as_str(), "done" | "failed")
        });
    }

    fn record(&self, run: &str) -> serde_json::Value {
        let record = self.lab.workspace().join("runs").join(run).join("record.json");
        serde_json::from_slice(&fs::read(record).unwrap_or_default()).unwrap_or_default()
    }

    fn wait_until_complete(&self, run: &str) {
        eventually("a complete record", 180, || {
            self.lab.show(run)["recorded"].as_str().is_some()
                && self.record(run)["delivery"]["complete"] == true
        });
        assert_eq!(self.record(run)["evidence_signature_valid"], true);
        let verified = self.lab.regatta().args(["runs", "verify", run]).status();
        assert!(verified.expect("regatta runs").success());
    }
}

fn id(run: &str) -> RunId {
    run.parse().expect("a run's id")
}

fn request_run(lab: &Lab) -> String {
    let words = ["--engine", "sim", "--scenario", "SingleStream"];
    lab.request_run(&[&words[..], &["--mode", "PerformanceOnly", "--duration", "3s"]].concat())
}

#[test]
fn forged_acknowledgements_delay_a_run_and_free_nothing() {
    let Some(mut foreign) = Foreign::start() else {
        return;
    };
    foreign.keep_logs_back(true);
    let run = request_run(&foreign.lab);
    foreign.lab.wait_for_phase(&run, "draining");
    foreign.acknowledge_everything(&run);
    // Unsigned commands are not executed.
    foreign.say(Leaf::Command(id(&run)), &Command::Release);
    foreign.say(Leaf::Command(id(&run)), &Command::Forget);
    let printed = || foreign.lab.device.as_ref().expect("it runs").output();
    eventually("the forged commands to be dropped", 20, || {
        printed()
            .matches("it is not signed, and this device is enrolled")
            .count()
            >= 2
    });
    assert!(foreign.run_directory(&run).join("files/evidence.sig").exists());

    foreign.keep_logs_back(false);
    foreign.wait_until_complete(&run);
    // The coordinator, which now has everything, releases and forgets the run.
    eventually("the device to forget the run", 60, || {
        !foreign.run_directory(&run).exists()
    });
}

/// Forged states, ends and lists are dropped, also while the real ones are withheld.
#[test]
fn forged_states_and_ends_of_streams_change_nothing() {
    let Some(mut foreign) = Foreign::start() else {
        return;
    };
    foreign.keep_logs_back(true);
    let run = request_run(&foreign.lab);
    foreign.lab.wait_for_phase(&run, "running");
    let forged = |phase, streams: &[&str]| StateReport {
        run: id(&run),
        state: RunState {
            phase,
            reason: Some("forged".to_owned()),
            revision: u64::MAX,
        },
        streams: streams
            .iter()
            .map(|name| name.parse().expect("a stream"))
            .collect(),
    };
    foreign.say(Leaf::State(id(&run)), &forged(RunPhase::Failed, &[]));
    foreign.say(Leaf::State(id(&run)), &forged(RunPhase::Done, &["x.txt"]));
    foreign.say(Leaf::State(id(&run)), &forged(RunPhase::Running, &[]));
    let printed = || foreign.lab.coordinator.as_ref().expect("it runs").output();
    eventually("the forged states to be dropped", 20, || {
        printed().contains("message that its device did not sign")
    });
    eventually("the run to be over", 60, || {
        foreign.phase_on_device(&run) == "draining"
            && foreign.run_directory(&run).join("files/evidence.sig").exists()
    });
    assert!(foreign.lab.show(&run)["recorded"].as_str().is_none());
    foreign.acknowledge_everything(&run);
    // The device connects again and lists its runs. A coordinator that accepted the forged end would now send `Forget`.
    drop(foreign.lab.device.take());
    foreign.lab.start_device();
    foreign.lab.wait_for_device();
    assert!(foreign.run_directory(&run).join("files/evidence.sig").exists());

    foreign.keep_logs_back(false);
    // Another forger sends matching ends of empty streams and of prefixes, and bytes.
    for stream in [
        "mlperf_log_detail.txt",
        "mlperf_log_summary.txt",
        "evidence.json",
        "evidence.sig",
        "x.txt",
    ] {
        let leaf = Leaf::Log(id(&run), stream.parse().expect("a stream"));
        let end = StreamEnd {
            length: 0,
            sha256: sha2::Sha256::digest(b"").into(),
        };
        foreign.say(leaf, &end);
    }
    foreign.wait_until_complete(&run);
    assert_eq!(foreign.lab.phase(&run), "done");
    eventually("the device to forget the run", 60, || {
        !foreign.run_directory(&run).exists()
    });
}
