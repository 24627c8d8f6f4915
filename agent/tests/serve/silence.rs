//! Tests of a connection that fails silently, as behind a router that has forgotten it: data is accepted and lost, and nothing is
//! reset.

use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
};

use regatta_types::documents::RunPhase;

use crate::{agent::Agent, coordinator::Coordinator, eventually, mosquitto::Mosquitto};

/// A relay to the broker whose connections can stop forwarding.
struct Relay {
    port: u16,
    state: Arc<RelayState>,
}

#[derive(Default)]
struct RelayState {
    connections: AtomicUsize,
    /// Connections up to this number forward nothing.
    deaf: AtomicUsize,
}

impl Relay {
    fn start(broker: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(RelayState::default());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect(("127.0.0.1", broker)) else {
                    return;
                };
                let number = shared.connections.fetch_add(1, Ordering::SeqCst) + 1;
                for (from, to) in [(&client, &server), (&server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let shared = Arc::clone(&shared);
                    thread::spawn(move || carry(from, to, number, &shared));
                }
            }
        });
        Self { port, state }
    }

    fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    fn deafen(&self) {
        self.state.deaf.store(self.connections(), Ordering::SeqCst);
    }
}

fn carry(mut from: TcpStream, mut to: TcpStream, number: usize, state: &RelayState) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let is_deaf = number <= state.deaf.load(Ordering::SeqCst);
        if !is_deaf && to.write_all(&buffer[..read]).is_err() {
            return;
        }
    }
}

#[test]
fn a_connection_that_died_silently_is_noticed_though_heartbeats_are_sent() {
    let Some(broker) = Mosquitto::start() else { return };
    let relay = Relay::start(broker.port);
    let agent = Agent::start(relay.port);
    let coordinator = Coordinator::start(broker.port, &agent.device);
    coordinator.wait_for_hello(true);
    let before = relay.connections();
    relay.deafen();
    eventually("the daemon to give the connection up and come back", 90, || {
        (relay.connections() > before).then_some(())
    });
    assert!(agent.log().contains("no message from the broker for 20 s"));
    let spec = agent.spec(300);
    coordinator.wait_for_hello(true);
    coordinator.start_run(&spec);
    coordinator.wait_for(spec.run, RunPhase::Done, 30);
}
