//! A table that a narrow window shows as a card for each row.

use maud::{Markup, html};

/// Renders a table around its rows.
pub(super) fn table(name: &str, titles: &[&str], rows: &Markup) -> Markup {
    html! {
        table role="table" aria-label=(name) {
            thead role="rowgroup" { tr role="row" {
                @for title in titles { th role="columnheader" scope="col" { (title) } }
            } }
            tbody role="rowgroup" { (*rows) }
        }
    }
}
