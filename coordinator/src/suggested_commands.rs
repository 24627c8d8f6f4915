//! Adds the workspace that the user named to the commands that messages suggest. Every hint and error passes here once, when it is printed.
//! Words are not quoted here.

/// The subcommands that create their own workspace.
const WITHOUT_WORKSPACE: [&str; 2] = ["init", "quickstart"];

/// Adds `option` to every command of `regatta` in backquotes that has no workspace.
pub(crate) fn complete(text: &str, option: &str) -> String {
    const PROGRAM: &str = "regatta ";
    let mut parts = text.split('`');
    let mut completed = parts.next().unwrap_or_default().to_owned();
    let mut is_quoted = true;
    let mut rest = parts.peekable();
    while let Some(part) = rest.next() {
        completed.push('`');
        completed.push_str(part);
        // Text without a closing backquote is not a quotation.
        let subcommand = part
            .strip_prefix(PROGRAM)
            .filter(|_| is_quoted && rest.peek().is_some());
        let needs_option = |words: &str| {
            let first = words.split_whitespace().next().unwrap_or_default();
            !WITHOUT_WORKSPACE.contains(&first) && !words.contains("--workspace")
        };
        if subcommand.is_some_and(needs_option) {
            completed.push(' ');
            completed.push_str(option);
        }
        is_quoted = !is_quoted;
    }
    completed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_backquotes_get_the_workspace() {
        for (text, completed) in [
            (
                "`regatta device list` shows the ids",
                "`regatta device list --workspace lab` shows the ids",
            ),
            (
                "unknown device `boat`; see `regatta runs show 12` or `regatta serve`",
                "unknown device `boat`; see `regatta runs show 12 --workspace lab` or `regatta serve --workspace lab`",
            ),
            ("`regatta init` makes keys", "`regatta init` makes keys"),
            (
                "`regatta serve --workspace other`",
                "`regatta serve --workspace other`",
            ),
            (
                "`regatta-agent serve` on the device",
                "`regatta-agent serve` on the device",
            ),
            ("one ` alone, regatta serve", "one ` alone, regatta serve"),
            ("open `regatta serve", "open `regatta serve"),
            ("", ""),
        ] {
            assert_eq!(complete(text, "--workspace lab"), completed);
        }
    }
}
