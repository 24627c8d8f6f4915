//! The forms of actions. What a form needs depends on the visitor; readers get a sentence and no button.

use maud::{Markup, html};

use super::access::Controls;

/// Renders the section of a page's actions.
pub(super) fn section(controls: &Controls, forms: &[Markup]) -> Markup {
    html! {
        section #actions {
            h2 { "Actions" }
            @if *controls == Controls::None {
                p .note { "You are logged in as a reader. Actions need an operator's token." }
            } @else if forms.is_empty() {
                p .note { "None now." }
            } @else {
                @for form in forms { (form) }
                @if *controls == Controls::TokenEach {
                    p .note {
                        "Everybody on this machine reads this page, so an action needs an operator's token: "
                        code { "regatta dashboard token add NAME --role operator" } "."
                    }
                }
            }
        }
    }
}

/// Renders the form of an action. `fields` are its own fields.
pub(super) fn form(controls: &Controls, action: &str, button: &str, fields: &Markup) -> Markup {
    html! {
        form .filter method="post" action=(action) {
            (fields)
            @match controls {
                Controls::Session(form_token) => { input type="hidden" name="csrf" value=(form_token); }
                Controls::TokenEach => {
                    label { "Operator's token "
                        input type="password" name="token" required autocomplete="current-password" maxlength="200";
                    }
                }
                Controls::None => {}
            }
            button { (button) }
        }
    }
}
