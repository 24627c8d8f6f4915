//! `regatta top`: the fleet on a screen that follows it, until the user leaves. It only reads the store: the devices as the live page reads
//! them, and how long a run takes at least.

mod columns;
mod draw;
mod keyboard;
mod run_times;
mod terminal_guard;
#[cfg(test)]
mod tests;
mod view;

use std::{
    io::{self, IsTerminal as _},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use self::{
    draw::{Palette, draw},
    keyboard::Keyboard,
    run_times::RunTimes,
    terminal_guard::open_screen,
    view::{TopView, Turn},
};
use super::{Context, context::Format, interrupts::end_requested, runtime};
use crate::exit::{CommandResult, Failure};
use regatta_dashboard::FleetSnapshot;
use regatta_lab_store::{self as store, Store, workspace::Workspace};
use regatta_types::ExitCode;

/// The interval between two looks at the store.
const REFRESH: Duration = Duration::from_secs(1);
/// The longest wait for a key, after which signals and the terminal's size are noticed.
const TURN: Duration = Duration::from_millis(200);
/// The variable that switches colours off, see no-color.org.
const NO_COLOR: &str = "NO_COLOR";

pub(super) fn run(context: &Context) -> CommandResult {
    if context.format != Format::Text || !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        return Err(Failure::misuse("`regatta top` is a screen: it needs a terminal").hint(
            "`regatta device list` prints the devices, `regatta events` what changes; both take --format json",
        ));
    }
    let (workspace, store) = context.open_store()?;
    let runtime = runtime()?;
    let end = end_requested(&runtime)?;
    let palette = Palette::new(std::env::var_os(NO_COLOR).is_none_or(|value| value.is_empty()));
    let mut view = TopView::new(read(&workspace, &store)?);
    let mut times = RunTimes::default();
    let mut screen = open_screen()?;
    let keyboard = Keyboard::start()?;
    let mut refreshed = Instant::now();
    while !end.load(Ordering::Relaxed) {
        let size = screen.size()?;
        view.resize(size);
        times.read(&view, &store)?;
        screen.draw(|frame| draw(frame, &view, &times, &palette))?;
        match keyboard.next(TURN).map(|key| view.press(key)) {
            Some(Turn::Leave) => break,
            Some(Turn::Stay) => {}
            None if keyboard.is_closed() => break,
            None => {}
        }
        if refreshed.elapsed() >= REFRESH {
            view.show(read(&workspace, &store)?);
            refreshed = Instant::now();
        }
    }
    Ok(ExitCode::Success)
}

/// Reads the fleet. Without a coordinator no device's messages arrive.
fn read(workspace: &Workspace, store: &Store) -> store::Result<view::Fleet> {
    let mut snapshot = FleetSnapshot::read(store)?;
    let is_served = workspace.is_served();
    for device in &mut snapshot.devices {
        device.row.online &= is_served;
    }
    Ok(view::Fleet { snapshot, is_served })
}
