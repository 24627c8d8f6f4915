//! Golden bytes of every message of wire version 1. Changed bytes are a changed format, which needs a new wire version:
//! devices and coordinators of different releases must still understand each other.

#![expect(clippy::unwrap_used, reason = "this crate is test code throughout")]

use std::fmt::Write as _;

use regatta_types::{
    DeviceId, RunId,
    documents::{EngineKind, RunPhase, RunState},
};
use regatta_wire::{
    chunk::{Chunk, LogMessage},
    enrollment::{Credentials, EnrollPurpose, EnrollRequest, EnrollResponse},
    message::{
        Ack, BoardReadings, Command, Examined, Heartbeat, HeldRun, Hello, Inventory, Message, RunHolding,
        StateReport, StreamEnd, StreamVerdict,
    },
    signed_command::SignedCommand,
    signed_report::SignedReport,
    topic::{Leaf, Topic},
};

fn device() -> DeviceId {
    "0123456789abcdef0123456789abcdef".parse().unwrap()
}

fn run() -> RunId {
    "01930e7a-6f00-7000-8000-000000000001".parse().unwrap()
}

/// Formats bytes as hexadecimal digits, sixteen to a line.
fn hex_dump(bytes: &[u8]) -> String {
    bytes.chunks(16).fold(String::new(), |mut text, line| {
        let digits: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(text, "{}", digits.join(" ")).unwrap();
        text
    })
}

fn golden<M: Message + std::fmt::Debug + PartialEq>(messages: &[M]) -> String {
    messages.iter().fold(String::new(), |mut text, message| {
        let frame = message.to_frame().unwrap();
        assert_eq!(&M::from_frame(&frame).unwrap(), message);
        writeln!(text, "{message:?}\n{}", hex_dump(&frame)).unwrap();
        text
    })
}

#[test]
fn hello() {
    let hello = Hello {
        device: device(),
        name: "boat-3".to_owned(),
        public_key: [0xa5; 32],
        online: true,
        agent: "regatta-agent 0.1.0".to_owned(),
        engines: EngineKind::ALL.to_vec(),
        facts_json: b"{}".to_vec(),
        runs: vec![run()],
    };
    insta::assert_snapshot!(golden(&[hello]));
}

#[test]
fn heartbeat() {
    let idle = Heartbeat {
        sequence: 1,
        uptime_ms: 1_000,
        running: None,
        spooled_bytes: 0,
        readings: BoardReadings::default(),
    };
    let busy = Heartbeat {
        sequence: 300,
        uptime_ms: 300_000,
        running: Some(run()),
        spooled_bytes: 1 << 33,
        readings: BoardReadings::default(),
    };
    insta::assert_snapshot!(golden(&[idle, busy.clone()]));
    let measured = Heartbeat {
        readings: BoardReadings {
            hottest_millicelsius: Some(61_500),
            milliwatts: Some(14_200),
        },
        ..busy.clone()
    };
    let hot = Heartbeat {
        readings: BoardReadings {
            hottest_millicelsius: Some(-5),
            milliwatts: None,
        },
        ..busy.clone()
    };
    insta::assert_snapshot!("heartbeat_with_readings", golden(&[measured, hot]));
}

#[test]
fn inventory() {
    let inventory = |runs| Inventory {
        session: 0x0102_0304_0506_0708,
        number: 2,
        page: 0,
        pages: 1,
        newest_command: 1_700_000_000_000_000,
        runs,
    };
    let held = |holding| HeldRun { run: run(), holding };
    let one_each = [RunHolding::Refused, RunHolding::Kept, RunHolding::Released].map(held);
    insta::assert_snapshot!(golden(&[inventory(Vec::new()), inventory(one_each.to_vec())]));
    let full = inventory(vec![held(RunHolding::Kept); Inventory::RUNS_PER_PAGE]).to_frame();
    assert!(full.is_ok(), "a full page fits into a frame: {full:?}");
}

#[test]
fn command() {
    let commands = [
        Command::Start {
            spec_json: b"{\"schema\":1}".to_vec(),
        },
        Command::Abort {
            reason: "by the user".to_owned(),
        },
        Command::Forget,
        Command::Examine,
        Command::Release,
        Command::Resend {
            streams: vec!["run.log".parse().unwrap()],
        },
        Command::StopServer,
    ];
    insta::assert_snapshot!(golden(&commands));
}

#[test]
fn examined() {
    let examined = Examined {
        json: "{\"fit\":true}".to_owned(),
        text: "fit to measure\n".to_owned(),
    };
    insta::assert_snapshot!(golden(&[examined]));
}

#[test]
fn state_report() {
    let phases = [
        RunPhase::Queued,
        RunPhase::Preparing,
        RunPhase::Ready,
        RunPhase::Running,
        RunPhase::Draining,
        RunPhase::Done,
        RunPhase::Failed,
        RunPhase::Aborted,
    ];
    let reports: Vec<StateReport> = (1..)
        .zip(phases)
        .map(|(revision, phase)| StateReport {
            run: run(),
            state: RunState {
                phase,
                reason: (phase == RunPhase::Failed).then(|| "why".to_owned()),
                revision,
            },
            streams: if phase.is_final() {
                vec!["run.log".parse().unwrap()]
            } else {
                Vec::new()
            },
        })
        .collect();
    insta::assert_snapshot!(golden(&reports));
}

#[test]
fn stream_end() {
    insta::assert_snapshot!(golden(&[StreamEnd {
        length: 70_000,
        sha256: [0x5a; 32]
    }]));
}

#[test]
fn ack() {
    let ack = |verdict| Ack {
        stream: "mlperf_log_detail.txt".parse().unwrap(),
        committed: 65_536,
        verdict,
    };
    insta::assert_snapshot!(golden(&[
        ack(None),
        ack(Some(StreamVerdict::Equal)),
        ack(Some(StreamVerdict::Different))
    ]));
}

#[test]
fn chunk() {
    let frame = Chunk {
        offset: 65_536,
        data: b":::MLLOG",
    }
    .to_frame()
    .unwrap();
    assert_eq!(
        LogMessage::from_frame(&frame),
        Ok(LogMessage::Chunk(Chunk {
            offset: 65_536,
            data: b":::MLLOG"
        }))
    );
    insta::assert_snapshot!(hex_dump(&frame));
}

#[test]
fn topics() {
    let leaves = [
        Leaf::Hello,
        Leaf::Telemetry,
        Leaf::Command(run()),
        Leaf::State(run()),
        Leaf::Log(run(), "run.log".parse().unwrap()),
        Leaf::Ack(run()),
    ];
    let topics: Vec<String> = leaves
        .into_iter()
        .map(|leaf| {
            let topic = Topic {
                device: device(),
                leaf,
            };
            assert_eq!(Topic::parse(&topic.to_string()).unwrap(), topic);
            topic.to_string()
        })
        .chain(Topic::device_subscriptions(&device()))
        .chain(Topic::coordinator_subscriptions())
        .collect();
    insta::assert_snapshot!(topics.join("\n"));
}

#[test]
fn signed_command() {
    let command = Command::Forget.to_frame().unwrap();
    let statement = SignedCommand::statement(&device(), run(), 0x0102_0304, &command);
    let signed = SignedCommand {
        number: 0x0102_0304,
        command,
        signature: vec![0x5a; 64],
    };
    insta::assert_snapshot!(format!(
        "{}statement\n{}",
        golden(&[signed]),
        hex_dump(&statement)
    ));
}

#[test]
fn signed_report() {
    let topic = Topic {
        device: device(),
        leaf: Leaf::Log(run(), "run.log".parse().unwrap()),
    };
    let end = StreamEnd {
        length: 70_000,
        sha256: [0x5a; 32],
    };
    let message = end.to_frame().unwrap();
    let report = SignedReport {
        public_key: [0xa5; 32],
        signature: [0x3c; 64],
        message: &message,
    };
    let frame = report.to_frame().unwrap();
    assert_eq!(SignedReport::from_frame(&frame), Ok(report));
    let statement = SignedReport::statement(&topic, &message);
    insta::assert_snapshot!(format!("{}statement\n{}", hex_dump(&frame), hex_dump(&statement)));
    for (length, fits) in [
        (SignedReport::MAX_MESSAGE, true),
        (SignedReport::MAX_MESSAGE + 1, false),
    ] {
        let message = vec![0; length];
        let report = SignedReport {
            public_key: [0; 32],
            signature: [0; 64],
            message: &message,
        };
        assert_eq!(report.to_frame().is_ok(), fits, "{length}");
    }
}

#[test]
fn enrollment() {
    let purposes = [
        EnrollPurpose::Enroll { secret: [0x11; 16] },
        EnrollPurpose::Renew,
        EnrollPurpose::Rename { secret: [0x11; 16] },
    ];
    let mut text = String::new();
    for purpose in purposes {
        let statement = EnrollRequest::statement(&purpose, &[0x22; 32], &[0x33; 32]);
        let request = EnrollRequest {
            purpose,
            public_key: [0x22; 32],
            proof: vec![0x44; 64],
        };
        writeln!(text, "{}statement\n{}", golden(&[request]), hex_dump(&statement)).unwrap();
    }
    let answers = [
        EnrollResponse::Accepted(Credentials {
            name: "boat-3".to_owned(),
            certificate: "certificate".to_owned(),
            not_after: "2027-11-21T00:00:00Z".to_owned(),
            authority: "authority".to_owned(),
            coordinator_key: [0x55; 32],
            broker: "mqtts://lab:8883".to_owned(),
            enrollment: "lab:8884".to_owned(),
        }),
        EnrollResponse::Refused("no".to_owned()),
        EnrollResponse::NotNow("later".to_owned()),
        EnrollResponse::OtherName {
            enrolled: "boat-1".to_owned(),
            token: "boat-2".to_owned(),
        },
        EnrollResponse::Removed {
            name: "boat-1".to_owned(),
        },
    ];
    text.push_str(&golden(&answers));
    insta::assert_snapshot!(text);
}
