//! Injects a fault into a lab and undoes it. The plan selects the fault and its time.

use std::{
    path::Path,
    thread,
    time::{Duration, Instant},
};

use regatta_tests::faults::processes::signal_processes;
use rustix::process::Signal;

use crate::{
    lab::{COORDINATOR_RUNS, DEVICE_RUNS, Lab},
    network,
    plan::{InjectedFault, Kind, Moment, ProxyFault, Side, Victim},
    proxy::{End, Proxy},
};

/// The longest wait for a run process to kill.
const RUN_PATIENCE: Duration = Duration::from_secs(4);
/// The time for which bytes accumulate before their connection is reset.
const GATHER: Duration = Duration::from_millis(200);
/// The delay of the proxy.
const DELAY: Duration = Duration::from_millis(200);

impl Lab {
    /// Injects a fault. Returns `false` when it has no target now, such as a run process to kill.
    pub(crate) fn inject(&mut self, fault: &InjectedFault) -> anyhow::Result<bool> {
        match fault.kind {
            Kind::Kill(Victim::Agent) => self.agent.kill(),
            Kind::Kill(Victim::Coordinator) => self.coordinator.kill(),
            Kind::Kill(Victim::Broker) => {
                if let Some(mosquitto) = &mut self.mosquitto {
                    mosquitto.kill();
                }
            }
            Kind::Kill(Victim::RunProcess) => {
                if !self.kill_run_process()? {
                    return Ok(false);
                }
            }
            Kind::KillAt(moment) => {
                if !self.kill_at(moment, fault.amount)? {
                    return Ok(false);
                }
            }
            Kind::Cut(side) => network::cut(side, true)?,
            Kind::Loss(side) => network::lose(side, fault.amount)?,
            Kind::Rate(side) => network::slow_down(side, fault.amount)?,
            Kind::Proxy(proxy_fault, side) => {
                disturb_connections(self.proxy(side), proxy_fault, fault.amount)
            }
            Kind::FullDisk(Side::Device) => self.make_device_disk_full(true)?,
            Kind::FullDisk(Side::Coordinator) => self.coordinator_disk.fill()?,
            Kind::SlowDisk(Side::Device) => self.device_disk.slow_down(DEVICE_RUNS, fault.amount)?,
            Kind::SlowDisk(Side::Coordinator) => {
                self.coordinator_disk.slow_down(COORDINATOR_RUNS, fault.amount)?
            }
            Kind::ClockStep(Side::Device) => self.agent.set_clock(fault.amount)?,
            Kind::ClockStep(Side::Coordinator) => self.coordinator.set_clock(fault.amount)?,
        }
        self.note(format!("{} ({}) for {:?}", fault.kind, fault.amount, fault.hold));
        Ok(true)
    }

    pub(crate) fn heal(&mut self, fault: &InjectedFault) -> anyhow::Result<()> {
        match fault.kind {
            Kind::Kill(Victim::Agent) | Kind::KillAt(Moment::Sealing | Moment::Releasing) => {
                self.agent.start()?;
            }
            Kind::Kill(Victim::Coordinator) | Kind::KillAt(Moment::Recording) => self.coordinator.start()?,
            Kind::Kill(Victim::Broker) => {
                if let Some(mosquitto) = &mut self.mosquitto {
                    mosquitto.start()?;
                }
            }
            Kind::Kill(Victim::RunProcess) | Kind::KillAt(Moment::Enrolling(_)) => {}
            Kind::Cut(side) => network::cut(side, false)?,
            Kind::Loss(side) => network::lose_nothing(side)?,
            Kind::Rate(side) => network::speed_up(side)?,
            Kind::Proxy(ProxyFault::Delay, side) => self.proxy(side).delay(Duration::ZERO),
            Kind::Proxy(ProxyFault::Stall, side) => self.proxy(side).stall(false),
            Kind::Proxy(ProxyFault::LateBytes, side) => self.proxy(side).release(),
            // The end of a half-open connection notices it by itself.
            Kind::Proxy(ProxyFault::Reset | ProxyFault::HalfOpen, _) => {}
            Kind::FullDisk(Side::Device) => self.make_device_disk_full(false)?,
            Kind::FullDisk(Side::Coordinator) => self.coordinator_disk.free_space()?,
            Kind::SlowDisk(Side::Device) => self.device_disk.speed_up(DEVICE_RUNS)?,
            Kind::SlowDisk(Side::Coordinator) => self.coordinator_disk.speed_up(COORDINATOR_RUNS)?,
            Kind::ClockStep(Side::Device) => self.agent.set_clock(0)?,
            Kind::ClockStep(Side::Coordinator) => self.coordinator.set_clock(0)?,
        }
        self.note(format!("{} is over", fault.kind));
        Ok(())
    }

    fn proxy(&self, side: Side) -> &Proxy {
        match side {
            Side::Device => &self.device_proxy,
            Side::Coordinator => self.coordinator_proxy.as_ref().unwrap_or(&self.device_proxy),
        }
    }

    /// Waits for a moment and kills its process. Returns `false` when the moment does not come.
    fn kill_at(&mut self, moment: Moment, amount: i64) -> anyhow::Result<bool> {
        let closed = self.write_log.closed_files();
        let begin = Instant::now();
        while begin.elapsed() < RUN_PATIENCE {
            let Ok(path) = closed.recv_timeout(Duration::from_millis(20)) else {
                self.pass(Duration::ZERO)?;
                continue;
            };
            let Some(delay) = delay_after(moment, &path, amount) else {
                continue;
            };
            thread::sleep(delay);
            match moment {
                Moment::Sealing | Moment::Releasing => self.agent.kill(),
                Moment::Recording => self.coordinator.kill(),
                Moment::Enrolling(_) => return Ok(false),
            }
            return Ok(true);
        }
        Ok(false)
    }

    fn kill_run_process(&mut self) -> anyhow::Result<bool> {
        let begin = Instant::now();
        while begin.elapsed() < RUN_PATIENCE {
            if signal_processes(Signal::KILL, |line| line.split(' ').nth(1) == Some("exec")) {
                return Ok(true);
            }
            self.pass(Duration::from_millis(20))?;
        }
        Ok(false)
    }
}

/// Returns the time from the close of a file to the kill, if the file is the one that `amount` selects for this moment.
fn delay_after(moment: Moment, path: &Path, amount: i64) -> Option<Duration> {
    let name = path.file_name()?.to_str()?;
    let name = name
        .trim_start_matches('.')
        .trim_end_matches(".new")
        .trim_end_matches(".part");
    let (expected, delay) = match (moment, amount) {
        // Between evidence and signature; after the signature; then before, during and after the hashing.
        (Moment::Sealing, 0) => ("evidence.json", 0),
        (Moment::Sealing, 1) => ("evidence.sig", 0),
        (Moment::Sealing, _) => ("attempt.json", amount - 2),
        (Moment::Recording | Moment::Releasing, _) => ("record.json", amount),
        (Moment::Enrolling(_), _) => return None,
    };
    (name == expected).then(|| Duration::from_millis(delay.unsigned_abs()))
}

fn disturb_connections(proxy: &Proxy, proxy_fault: ProxyFault, amount: i64) {
    match proxy_fault {
        ProxyFault::Delay => proxy.delay(DELAY),
        ProxyFault::Stall => proxy.stall(true),
        ProxyFault::Reset => proxy.reset(),
        ProxyFault::HalfOpen => proxy.half_open(if amount == 0 { End::Client } else { End::Broker }),
        ProxyFault::LateBytes => {
            proxy.hold();
            thread::sleep(GATHER);
            proxy.reset_held_clients();
        }
    }
}
