//! The screen at several sizes and after keys, drawn from a store of devices as they describe themselves.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use ratatui_core::{backend::TestBackend, layout::Size, terminal::Terminal};
use regatta_types::{
    DeviceId,
    documents::{RunPhase, RunState},
};
use regatta_wire::message::{BoardReadings, Hello};
use termion::event::Key;

use super::{
    draw::{Palette, draw},
    run_times::RunTimes,
    view::{Fleet, TopView, Turn},
};
use regatta_dashboard::FleetSnapshot;
use regatta_lab_store::{HealthChange, Store, examples::example_draft};

fn add_device(store: &Store, number: u8, name: &str, readings: BoardReadings) -> DeviceId {
    let public_key = [number; 32];
    let hello = Hello {
        device: DeviceId::of_public_key(&public_key),
        name: name.to_owned(),
        public_key,
        online: true,
        agent: "regatta-agent 0.1.0".to_owned(),
        engines: Vec::new(),
        facts_json:
            br#"{"hostname":"h","model":"m","arch":"a","kernel":"k","os":"o","cpus":6,"memory_bytes":0,
            "cpu_governor":null,"cpu_khz":1984000,"hottest_millicelsius":null,"load_average":null}"#
                .to_vec(),
        runs: Vec::new(),
    };
    store.devices().record_hello(&hello).unwrap();
    store
        .devices()
        .record_heartbeat(&hello.device, None, readings)
        .unwrap();
    hello.device
}

/// Creates the store of a fleet with one device of each kind.
fn store() -> Store {
    let store = Store::open(Path::new(":memory:")).unwrap();
    let readings = |millicelsius, milliwatts| BoardReadings {
        hottest_millicelsius: Some(millicelsius),
        milliwatts: Some(milliwatts),
    };
    let busy = add_device(&store, 1, "boat-1", readings(61_234, 18_400));
    for sent in [true, false, false] {
        let draft = example_draft(busy.clone());
        store.runs().add(&draft).unwrap();
        if sent {
            let state = RunState {
                phase: RunPhase::Running,
                reason: None,
                revision: 1,
            };
            store.runs().fix_spec(draft.spec.run, "00").unwrap();
            store.runs().record_state(&busy, draft.spec.run, &state).unwrap();
        }
    }
    add_device(&store, 2, "boat-2", BoardReadings::default());
    let hot = add_device(&store, 3, "boat-10", readings(99_000, 25_000));
    let drained = HealthChange::Drained(Some("fan"));
    store.health().change(&hot, drained, "ann").unwrap();
    let hostile = add_device(
        &store,
        4,
        "\u{1b}[2J\u{202e}boat\n\u{7}日本語日本語日本語",
        readings(20_000, 0),
    );
    store.devices().mark_offline(&hostile).unwrap();
    store
}

struct Screen {
    store: Store,
    view: TopView,
    times: RunTimes,
    /// The time of the fleet, after the present: the store has the present time.
    now: Timestamp,
}

impl Screen {
    fn new(store: Store) -> Self {
        let now = Timestamp::now() + SignedDuration::from_secs(20);
        Self {
            view: TopView::new(fleet(&store, now)),
            store,
            times: RunTimes::default(),
            now,
        }
    }

    /// Returns the picture of a terminal of this size.
    fn draw(&mut self, width: u16, height: u16) -> String {
        self.view.show(fleet(&self.store, self.now));
        self.view.resize(Size::new(width, height));
        self.times.read(&self.view, &self.store).unwrap();
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let palette = Palette::new(true);
        terminal
            .draw(|frame| draw(frame, &self.view, &self.times, &palette))
            .unwrap();
        terminal.backend().to_string()
    }

    fn press(&mut self, keys: &str) {
        for key in keys.chars() {
            assert_eq!(self.view.press(Key::Char(key)), Turn::Stay);
        }
    }

    /// Returns the first words of the shown devices' lines.
    fn names(&mut self) -> Vec<String> {
        let shown = self.view.shown();
        shown.iter().map(|device| device.row.name.clone()).collect()
    }
}

fn fleet(store: &Store, now: Timestamp) -> Fleet {
    let mut snapshot = FleetSnapshot::read(store).unwrap();
    snapshot.read = now;
    Fleet {
        snapshot,
        is_served: true,
    }
}

#[test]
fn the_screen_at_80_columns_and_at_200() {
    let mut screen = Screen::new(store());
    screen.press("jjj");
    insta::assert_snapshot!("80x24", screen.draw(80, 24));
    insta::assert_snapshot!("200x50", screen.draw(200, 50));
}

#[test]
fn any_size_is_drawn_and_no_name_reaches_the_terminal_unescaped() {
    let mut screen = Screen::new(store());
    for width in [1, 2, 10, 21, 40, 60, 79, 133, 500] {
        for height in [1, 2, 4, 6, 24, 100] {
            let shown = screen.draw(width, height);
            let is_harmless =
                |character: char| character == '\n' || !character.is_control() && character != '\u{202e}';
            assert!(shown.chars().all(is_harmless), "{width}x{height}\n{shown}");
        }
    }
}

#[test]
fn keys_sort_filter_and_find() {
    let mut screen = Screen::new(store());
    screen.draw(80, 24);
    assert_eq!(screen.names()[1..], ["boat-1", "boat-2", "boat-10"]);
    screen.press("f");
    screen.press("f");
    assert_eq!(screen.names(), ["boat-1"], "busy");
    screen.press("a/BOAT-1\n");
    assert_eq!(screen.names(), ["boat-1", "boat-10"]);
    // Letters belong to the text and have no other function.
    screen.press("/q");
    assert!(screen.names().is_empty());
    assert_eq!(screen.view.press(Key::Esc), Turn::Stay);
    screen.press("hhhh");
    assert_eq!(screen.names(), ["boat-10"], "maintenance");
    screen.press("h<");
    assert_eq!(screen.names()[0], "boat-10", "the most power first");
    screen.press("r");
    assert_eq!(
        screen.names().last().unwrap(),
        "boat-2",
        "without a sensor, last in both directions"
    );
    assert_eq!(screen.view.press(Key::Esc), Turn::Leave);
    assert_eq!(screen.view.press(Key::Ctrl('c')), Turn::Leave);
}

#[test]
fn a_long_list_scrolls_and_keeps_the_selected_device() {
    let store = Store::open(Path::new(":memory:")).unwrap();
    for number in 1..=100 {
        add_device(
            &store,
            number,
            &format!("boat-{number}"),
            BoardReadings::default(),
        );
    }
    let mut screen = Screen::new(store);
    screen.draw(80, 25);
    assert_eq!((screen.names().len(), screen.names()[0].as_str()), (20, "boat-1"));
    screen.press("G");
    assert_eq!(screen.names().last().unwrap(), "boat-100");
    screen.press("r");
    // The selected device is the first one now.
    assert_eq!(screen.names()[0], "boat-100");
    screen.draw(80, 8);
    assert_eq!(screen.names(), ["boat-100", "boat-99", "boat-98"]);
    screen.press("jjj");
    assert_eq!(screen.names(), ["boat-99", "boat-98", "boat-97"]);
    assert_eq!(screen.view.selected().unwrap().row.name, "boat-97");
}
