//! The simulated PTDaemon as one executable file, because `ptd` in server.conf takes no arguments.

use std::{
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use regatta_text::quote_for_shell;

/// Writes a program into `directory` that starts the simulated PTDaemon with these words before the official server's.
pub fn write_ptd_program(directory: &Path, words: &[String]) -> io::Result<PathBuf> {
    let own = regatta_fsutil::own_program::own_program()?;
    let words: Vec<String> = words.iter().map(|word| quote_for_shell(word)).collect();
    let text = format!(
        "#!/bin/sh\n# A simulated PTDaemon. It measures nothing.\nexec {} power simulate-ptd {} \"$@\"\n",
        quote_for_shell(&own.display().to_string()),
        words.join(" ")
    );
    let path = directory.join("simulated-ptd");
    fs::write(&path, text)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}
