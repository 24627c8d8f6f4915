//! The lab's keys, as a user creates them: `regatta init`, a device that enrolls with a token, TLS 1.3 with client certificates, and
//! signed commands. This works with either broker. Of the faults only kills during enrollment happen here.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use regatta_tests::{Broker, faults::Rng, shell};

use crate::{
    lab::Lab,
    plan::{Kind, Moment, Side},
    proxy::Proxy,
};

const MOSQUITTO_PORT: u16 = 1884;
/// The enrollment port, at the coordinator's address and at the relay on the device's link.
const ENROLLMENT_PORT: u16 = 8884;
/// The sides that are killed during enrollment, in this order.
pub(crate) const KILLED_DURING_ENROLLMENT: [Side; 2] = [Side::Device, Side::Coordinator];
const ENROLLMENT_PATIENCE: Duration = Duration::from_secs(30);

/// Creates the coordinator's workspace with new keys, and with a mosquitto configuration if that is the broker.
pub(crate) fn make_lab(workspace: &Path, broker: Broker, regatta: &Path) -> anyhow::Result<()> {
    let listen = match broker {
        Broker::Embedded => Side::Coordinator.address(),
        Broker::Mosquitto => local_mosquitto(),
    };
    let mut init = Command::new(regatta);
    init.arg("--workspace").arg(workspace).arg("init");
    // The device can reach only the campaign's end of its link.
    init.arg(format!("--host={}", Side::Device.proxy().ip()))
        .arg(format!("--listen={listen}"))
        .arg(format!(
            "--enroll-listen={}",
            enrollment(Side::Coordinator.address())
        ));
    if broker == Broker::Mosquitto {
        init.args(["--broker", "mosquitto"]);
    }
    shell::succeed(&mut init)?;
    if broker == Broker::Mosquitto {
        // The coordinator reaches mosquitto as if it were on another machine.
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

/// Copies the configuration of `regatta init` to mosquitto's own directory, which is never on a full disk.
pub(crate) fn place_mosquitto(workspace: &Path, place: &Path) -> anyhow::Result<PathBuf> {
    let written = workspace.join("mosquitto");
    shell::succeed(shell::command("cp")?.arg("-a").arg(&written).arg(place))?;
    let config = place.join("mosquitto.conf");
    let text = fs::read_to_string(&config)?;
    let (there, here) = (written.display().to_string(), place.display().to_string());
    fs::write(&config, text.replace(&there, &here))?;
    Ok(config)
}

/// Enrolls the device through a relay between the two links, and kills each side once meanwhile. The coordinator must be running.
pub(crate) fn enroll(lab: &mut Lab, name: &str, rng: &mut Rng) -> anyhow::Result<()> {
    Proxy::start(
        enrollment(Side::Device.proxy()),
        enrollment(Side::Coordinator.address()),
    )?;
    let added = shell::succeed(lab.regatta()?.args(["device", "add", name, "--format", "json"]))?;
    let added: serde_json::Value =
        serde_json::from_slice(&added.stdout).context("`device add` prints JSON")?;
    let token = added["token"].as_str().context("`device add` gives a token")?;
    for side in KILLED_DURING_ENROLLMENT {
        let delay = Duration::from_millis(rng.between(2, 60));
        lab.note(format!(
            "{} after {delay:?}",
            Kind::KillAt(Moment::Enrolling(side))
        ));
        let mut enrolling = enroll_command(lab, token)?.stderr(Stdio::null()).spawn()?;
        lab.pass(delay)?;
        if side == Side::Coordinator {
            lab.coordinator.kill();
            lab.coordinator.start()?;
        }
        // It may have ended.
        let _ = enrolling.kill();
        enrolling.wait()?;
    }
    let begin = Instant::now();
    loop {
        match shell::succeed(&mut enroll_command(lab, token)?) {
            Ok(_) => return Ok(()),
            Err(refused) if begin.elapsed() > ENROLLMENT_PATIENCE => return Err(refused),
            // The coordinator is restarted meanwhile if it found no broker.
            Err(_) => lab.pass(Duration::from_millis(200))?,
        }
    }
}

fn enroll_command(lab: &Lab, token: &str) -> anyhow::Result<Command> {
    let mut enroll = shell::command("nsenter")?;
    enroll
        .arg(format!("--net=/run/netns/{}", Side::Device.namespace()))
        .arg(&lab.programs.agent)
        .args(["enroll", "--config", "agent.toml", token])
        .current_dir(lab.device_disk.root())
        // The report of the lab is the only output.
        .stdout(Stdio::null());
    Ok(enroll)
}

fn enrollment(mut address: SocketAddr) -> SocketAddr {
    address.set_port(ENROLLMENT_PORT);
    address
}

/// Returns the address of mosquitto. Only the proxies reach it.
pub(crate) fn local_mosquitto() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], MOSQUITTO_PORT))
}
