//! The parts of a page that change: pieces of HTML with ids, and the difference between two renderings. This file does not render.

use std::sync::Arc;

use maud::Markup;
use serde::Serialize;

/// A part of a page. Its HTML is one element with this id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// The element's id.
    pub(super) id: String,
    /// The element.
    pub(super) html: Arc<str>,
    /// Whether the element is a row of the page's list, which can grow, shrink and change its order.
    pub(super) is_row: bool,
}

/// All parts of a page that change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Pieces(pub(super) Vec<Piece>);

/// A change in a browser's page, as JSON.
#[derive(Serialize)]
struct Change<'a> {
    /// The ids of all rows in their order, if rows came, went or moved.
    rows: Option<Vec<&'a str>>,
    /// The pieces to set: id and HTML.
    set: Vec<(&'a str, &'a str)>,
}

impl Pieces {
    /// Adds a piece that is always there.
    pub(super) fn add(&mut self, id: &str, html: Markup) {
        self.push(id.to_owned(), html, false);
    }

    /// Adds the next row of the list.
    pub(super) fn add_row(&mut self, id: String, html: Markup) {
        self.push(id, html, true);
    }

    fn push(&mut self, id: String, html: Markup, is_row: bool) {
        let html = html.into_string().into();
        self.0.push(Piece { id, html, is_row });
    }

    /// Returns the rows' HTML in their order.
    pub(super) fn rows(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter(|piece| piece.is_row)
            .map(|piece| &*piece.html)
    }

    /// Returns the HTML of a piece.
    pub(super) fn html(&self, id: &str) -> &str {
        self.0
            .iter()
            .find(|piece| piece.id == id)
            .map_or("", |piece| &piece.html)
    }

    /// Returns the change from an earlier rendering to this one, or everything when there is none. `None` when both are equal.
    pub(super) fn change_since(&self, before: Option<&Self>) -> Option<String> {
        let ids = |pieces: &'_ Self| -> Vec<String> {
            let rows = pieces.0.iter().filter(|piece| piece.is_row);
            rows.map(|piece| piece.id.clone()).collect()
        };
        let has_same_rows = before.is_some_and(|before| ids(before) == ids(self));
        let known: std::collections::HashMap<&str, &str> = before
            .map(|before| {
                before
                    .0
                    .iter()
                    .map(|piece| (piece.id.as_str(), &*piece.html))
                    .collect()
            })
            .unwrap_or_default();
        let changed = self
            .0
            .iter()
            .filter(|piece| known.get(piece.id.as_str()) != Some(&&*piece.html));
        let change = Change {
            rows: (!has_same_rows).then(|| {
                let rows = self.0.iter().filter(|piece| piece.is_row);
                rows.map(|piece| piece.id.as_str()).collect()
            }),
            set: changed.map(|piece| (piece.id.as_str(), &*piece.html)).collect(),
        };
        if change.rows.is_none() && change.set.is_empty() {
            return None;
        }
        // Texts always serialize.
        serde_json::to_string(&change).ok()
    }
}

#[cfg(test)]
mod tests {
    use maud::html;

    use super::*;

    fn pieces(rows: &[(&str, &str)]) -> Pieces {
        let mut pieces = Pieces::default();
        pieces.add("summary", html! { p #summary { (rows.len()) } });
        for (id, text) in rows {
            pieces.add_row((*id).to_owned(), html! { tr id=(id) { td { (text) } } });
        }
        pieces
    }

    #[test]
    fn a_change_has_only_what_changed() {
        let before = pieces(&[("a", "1"), ("b", "1")]);
        assert_eq!(before.change_since(Some(&before.clone())), None);
        let changed = pieces(&[("a", "1"), ("b", "2")]).change_since(Some(&before));
        assert_eq!(
            changed.as_deref(),
            Some(r#"{"rows":null,"set":[["b","<tr id=\"b\"><td>2</td></tr>"]]}"#)
        );
        let moved = pieces(&[("b", "1"), ("a", "1")]).change_since(Some(&before));
        assert_eq!(moved.as_deref(), Some(r#"{"rows":["b","a"],"set":[]}"#));
        let all = before.change_since(None).unwrap();
        assert!(
            all.starts_with(r#"{"rows":["a","b"],"set":[["summary","#),
            "{all}"
        );
    }
}
