//! The simulated PTDaemon as a process: starts late or at once, and serves one connection after the other.

use std::{
    fs::File,
    io,
    net::{Ipv4Addr, TcpListener},
    thread,
};

use regatta_catalogue::round::SIMULATION_MARK;

use super::{console::Console, fault::FaultKind, measurement::Meter, options::SimulatedPtd, protocol};

impl SimulatedPtd {
    /// Serves one connection after the other until the process is ended.
    ///
    /// # Errors
    /// When the log cannot be made or the port is in use.
    pub fn serve(self) -> io::Result<()> {
        let console = Console;
        console.print(&format!(
            "{SIMULATION_MARK}: a simulated PTDaemon of Regatta. Its figures are not a measurement."
        ));
        let log = File::create(&self.log)?;
        for fault in &self.faults {
            if let FaultKind::SlowStart(time) = fault.kind {
                thread::sleep(time);
            }
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port))?;
        console.stamped(&format!("Uncertainty checking for {} is activated", self.model));
        let meter = Meter::new(&self, log, console);
        loop {
            let (stream, _) = listener.accept()?;
            // A client that hangs up in the middle of a reply is no reason to end.
            let _ = protocol::serve(&self, &meter, console, stream);
        }
    }
}
