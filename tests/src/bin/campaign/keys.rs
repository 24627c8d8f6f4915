//! The lab's keys, as a user makes them: `regatta init`, a device that enrols with a token, TLS 1.3 with client certificates
//! and signed commands over either broker. Faults begin when all of that is done.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use regatta_tests::Broker;

use crate::{lab::Lab, plan::Side, proxy::Proxy, shell};

const MOSQUITTO_PORT: u16 = 1884;
/// Where devices enrol, at the coordinator's address and at the relay on the device's link.
const ENROLMENT_PORT: u16 = 8884;
const ENROLMENT_PATIENCE: Duration = Duration::from_secs(30);

/// Makes the coordinator's workspace with new keys, and with a configuration for mosquitto where that is the broker.
///
/// # Errors
/// When `regatta init` fails.
pub(crate) fn make_lab(workspace: &Path, broker: Broker) -> anyhow::Result<()> {
    let listen = match broker {
        Broker::Embedded => Side::Coordinator.address(),
        Broker::Mosquitto => local_mosquitto(),
    };
    let mut init = Command::new(regatta_tests::regatta());
    init.arg("--workspace").arg(workspace).arg("init");
    // The device reaches nothing but the campaign's end of its link.
    init.arg(format!("--host={}", Side::Device.proxy().ip()))
        .arg(format!("--listen={listen}"))
        .arg(format!(
            "--enrol-listen={}",
            enrolment(Side::Coordinator.address())
        ));
    if broker == Broker::Mosquitto {
        init.args(["--broker", "mosquitto"]);
    }
    shell::succeed(&mut init)?;
    if broker == Broker::Mosquitto {
        // It is on another machine, as the coordinator sees it.
        let config = workspace.join("regatta.toml");
        let here = format!("mqtts://{listen}");
        let text = fs::read_to_string(&config)?;
        ensure!(text.contains(&here), "regatta.toml does not name {here}");
        fs::write(
            &config,
            text.replace(&here, &format!("mqtts://{}", Side::Coordinator.proxy())),
        )?;
    }
    Ok(())
}

/// Takes the configuration that `regatta init` wrote to mosquitto's own machine, where no disk is ever full.
///
/// # Errors
/// When it is not there.
pub(crate) fn place_mosquitto(workspace: &Path, place: &Path) -> anyhow::Result<PathBuf> {
    let written = workspace.join("mosquitto");
    shell::succeed(shell::command("cp")?.arg("-a").arg(&written).arg(place))?;
    let config = place.join("mosquitto.conf");
    let text = fs::read_to_string(&config)?;
    let (there, here) = (written.display().to_string(), place.display().to_string());
    fs::write(&config, text.replace(&there, &here))?;
    Ok(config)
}

/// Enrols the device by a relay between the two links. The coordinator has been started.
///
/// # Errors
/// When it does not answer in time.
pub(crate) fn enrol(lab: &mut Lab, name: &str) -> anyhow::Result<()> {
    Proxy::start(
        enrolment(Side::Device.proxy()),
        enrolment(Side::Coordinator.address()),
    )?;
    let added = shell::succeed(lab.regatta()?.args(["device", "add", name, "--format", "json"]))?;
    let added: serde_json::Value =
        serde_json::from_slice(&added.stdout).context("`device add` prints JSON")?;
    let token = added["token"].as_str().context("`device add` gives a token")?;
    let begin = Instant::now();
    loop {
        let mut enrol = shell::command("nsenter")?;
        enrol
            .arg(format!("--net=/run/netns/{}", Side::Device.namespace()))
            .arg(regatta_tests::agent())
            .args(["enroll", "--config", "agent.toml", token])
            .current_dir(lab.device_disk.root());
        match shell::succeed(&mut enrol) {
            Ok(_) => return Ok(()),
            Err(refused) if begin.elapsed() > ENROLMENT_PATIENCE => return Err(refused),
            // A coordinator that found no broker is started again meanwhile.
            Err(_) => lab.pass(Duration::from_millis(200))?,
        }
    }
}

fn enrolment(mut address: SocketAddr) -> SocketAddr {
    address.set_port(ENROLMENT_PORT);
    address
}

/// mosquitto listens here; only the proxies reach it.
pub(crate) fn local_mosquitto() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], MOSQUITTO_PORT))
}
