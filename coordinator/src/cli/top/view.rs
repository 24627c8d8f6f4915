//! The screen's view of the fleet: order, filters, the selected device and the first shown one. Keys change it. It draws nothing.

use ratatui_core::layout::Size;
use regatta_types::DeviceId;
use termion::event::Key;

use regatta_dashboard::{FleetDevice, FleetQuery, FleetSnapshot, SortKey, selected};
use regatta_lab_store::{DeviceActivity, DeviceHealth};

/// The lines around the devices: summary, filters, heading, selected device, keys.
const OTHER_LINES: u16 = 5;
/// The longest text to find, in characters.
const MAX_TEXT: usize = 100;

/// The fleet, and whether a coordinator serves it.
#[derive(Debug)]
pub(super) struct Fleet {
    pub(super) snapshot: FleetSnapshot,
    pub(super) is_served: bool,
}

/// The meaning of a key for the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Stay,
    Leave,
}

/// The view of the fleet.
#[derive(Debug)]
pub(super) struct TopView {
    pub(super) fleet: Fleet,
    pub(super) query: FleetQuery,
    /// Whether keys add to the text to find.
    pub(super) is_typing: bool,
    selected: Option<DeviceId>,
    first: usize,
    rows: usize,
}

impl TopView {
    /// Returns the view of every device by name.
    pub(super) fn new(fleet: Fleet) -> Self {
        Self {
            fleet,
            query: FleetQuery::default(),
            is_typing: false,
            selected: None,
            first: 0,
            rows: 1,
        }
    }

    /// Shows a newer state of the fleet. The selected device stays selected.
    pub(super) fn show(&mut self, fleet: Fleet) {
        self.fleet = fleet;
        self.settle();
    }

    /// Fits the view to the terminal.
    pub(super) fn resize(&mut self, size: Size) {
        self.rows = usize::from(size.height.saturating_sub(OTHER_LINES)).max(1);
        self.settle();
    }

    /// Returns the devices that match the filters, in order.
    pub(super) fn devices(&self) -> Vec<&FleetDevice> {
        selected(&self.query, &self.fleet.snapshot)
    }

    /// Returns the devices on the screen.
    pub(super) fn shown(&self) -> Vec<&FleetDevice> {
        self.devices()
            .into_iter()
            .skip(self.first)
            .take(self.rows)
            .collect()
    }

    pub(super) fn selected(&self) -> Option<&FleetDevice> {
        let id = self.selected.as_ref()?;
        self.devices().into_iter().find(|device| device.row.id == *id)
    }

    pub(super) fn is_selected(&self, device: &FleetDevice) -> bool {
        self.selected.as_ref() == Some(&device.row.id)
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: Key) -> Turn {
        match key {
            Key::Ctrl('c') => return Turn::Leave,
            Key::Char('\n') if self.is_typing => self.is_typing = false,
            Key::Esc if self.is_typing => {
                self.is_typing = false;
                self.query.text.clear();
            }
            Key::Backspace if self.is_typing => {
                self.query.text.pop();
            }
            Key::Char(character) if self.is_typing => self.type_character(character),
            Key::Char('q') | Key::Esc => return Turn::Leave,
            Key::Char('/') => self.is_typing = true,
            Key::Char('s' | '>') => self.sort_by_next(1),
            Key::Char('<') => self.sort_by_next(SortKey::ALL.len() - 1),
            Key::Char('r') => self.query.is_descending = !self.query.is_descending,
            Key::Char('f') => self.query.state = next(&DeviceActivity::ALL, self.query.state),
            Key::Char('h') => self.query.health = next(&DeviceHealth::ALL, self.query.health),
            Key::Char('a') => {
                let (sort, is_descending) = (self.query.sort, self.query.is_descending);
                self.query = FleetQuery {
                    sort,
                    is_descending,
                    ..FleetQuery::default()
                };
            }
            Key::Up | Key::Char('k') => self.move_by(-1),
            Key::Down | Key::Char('j') => self.move_by(1),
            Key::PageUp => self.move_by(-self.page()),
            Key::PageDown | Key::Char(' ') => self.move_by(self.page()),
            Key::Home | Key::Char('g') => self.move_by(isize::MIN),
            Key::End | Key::Char('G') => self.move_by(isize::MAX),
            _ => {}
        }
        self.settle();
        Turn::Stay
    }

    fn type_character(&mut self, character: char) {
        if self.query.text.chars().count() < MAX_TEXT && !character.is_control() {
            self.query.text.extend(character.to_lowercase());
        }
    }

    fn sort_by_next(&mut self, steps: usize) {
        let keys = SortKey::ALL;
        let now = keys.iter().position(|key| *key == self.query.sort).unwrap_or(0);
        self.query.sort = keys[(now + steps) % keys.len()];
        // The largest first, but names from A.
        self.query.is_descending = matches!(
            self.query.sort,
            SortKey::Health | SortKey::Queued | SortKey::Temperature | SortKey::Clock | SortKey::Power
        );
    }

    fn page(&self) -> isize {
        isize::try_from(self.rows).unwrap_or(isize::MAX)
    }

    fn move_by(&mut self, steps: isize) {
        let ids: Vec<DeviceId> = self
            .devices()
            .iter()
            .map(|device| device.row.id.clone())
            .collect();
        let now = ids.iter().position(|id| self.selected.as_ref() == Some(id));
        let next = now
            .unwrap_or(0)
            .saturating_add_signed(steps)
            .min(ids.len().saturating_sub(1));
        self.selected = ids.get(next).cloned();
        self.first = self.first.clamp((next + 1).saturating_sub(self.rows), next);
    }

    /// Keeps the selection and the first line inside the list.
    fn settle(&mut self) {
        let devices = self.devices();
        let position = devices.iter().position(|device| self.is_selected(device));
        let (count, first_id) = (devices.len(), devices.first().map(|device| device.row.id.clone()));
        match position {
            Some(position) => {
                self.first = self
                    .first
                    .clamp((position + 1).saturating_sub(self.rows), position);
            }
            None => {
                self.selected = first_id;
                self.first = 0;
            }
        }
        self.first = self.first.min(count.saturating_sub(self.rows));
    }
}

/// Returns the word after `now`, or none after the last.
fn next<T: Copy + PartialEq>(known: &[T], now: Option<T>) -> Option<T> {
    match now {
        None => known.first().copied(),
        Some(now) => {
            let position = known.iter().position(|known| *known == now)?;
            known.get(position + 1).copied()
        }
    }
}
