//! A table that becomes one card per row in a narrow window.

use maud::{Markup, html};

/// Renders a table with these rows.
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
