//! The steps that change a board. Each step runs one script and has its own error. [`super::deployment`] has their order and the handling
//! of failures.

use std::io;

use regatta_fsutil::regular_file;
use regatta_ssh::{Answer, Board, LinkLost, Output, Root, Script, Secret, last_lines, retry_password};

use super::{
    install_method::InstallMethod,
    package::Package,
    survey::{Sudo, Survey},
};

const SERVICE: &str = include_str!("scripts/service.sh");

/// A failed step.
#[derive(Debug, thiserror::Error)]
pub enum StepError {
    #[error(transparent)]
    Link(#[from] LinkLost),
    /// The local package cannot be read.
    #[error("the package cannot be read")]
    Package(#[source] io::Error),
    /// The login's user may not use sudo.
    #[error("{user} may not use sudo on this board, and the system service needs root's rights")]
    NoSudoer {
        /// The login.
        user: String,
    },
    /// The board refused or failed.
    #[error("{what}: {why}")]
    Refused {
        /// The step that failed.
        what: &'static str,
        /// The board's message.
        why: String,
    },
}

/// The paths of the agent on a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The agent's program.
    pub program: String,
    /// The agent's configuration.
    pub config: String,
    /// The agent's key, enrollment and runs.
    pub state: String,
    /// The user who owns the state, if that is not the login, otherwise empty. Root does nothing in the state: each script that uses it
    /// switches to this user first.
    pub owner: &'static str,
}

impl Places {
    /// Returns the paths to which a package is installed.
    pub(crate) fn of(way: InstallMethod, survey: &Survey) -> Self {
        match way {
            InstallMethod::System => Self {
                program: "/usr/bin/regatta-agent".to_owned(),
                config: "/etc/regatta/agent.toml".to_owned(),
                state: "/var/lib/regatta".to_owned(),
                owner: "regatta",
            },
            InstallMethod::User => Self {
                program: format!("{}/.local/bin/regatta-agent", survey.home),
                config: format!("{}/.config/regatta/agent.toml", survey.home),
                state: format!("{}/.local/state/regatta", survey.home),
                owner: "",
            },
        }
    }
}

/// A board during a deployment.
pub(crate) struct BoardInstallation<'a> {
    /// The link to the board.
    pub board: &'a dyn Board,
    /// The source of root rights. `None` where they are not needed.
    pub root: Option<Root>,
    pub way: InstallMethod,
    /// The agent's paths.
    pub places: Places,
    /// The directory for copied packages.
    pub cache: String,
}

impl BoardInstallation<'_> {
    /// Determines the source of root rights. Calls `password` when sudo requires one. Its argument is whether the previous password was
    /// wrong.
    ///
    /// # Errors
    /// Returns an error for a wrong password, or a user that sudo does not allow.
    pub(crate) fn rights(
        board: &dyn Board,
        survey: &Survey,
        way: InstallMethod,
        password: &mut dyn FnMut(bool) -> Option<Secret>,
    ) -> Result<Option<Root>, StepError> {
        if way == InstallMethod::User {
            return Ok(None);
        }
        match (survey.is_root, survey.sudo) {
            (true, _) => return Ok(Some(Root::Already)),
            (false, Sudo::Free) => return Ok(Some(Root::Sudo)),
            (false, _) => {}
        }
        let mut root = None;
        let mut refusal =
            "none was entered: run this in a terminal to be prompted, or use --password-stdin".to_owned();
        let answer = retry_password(password, |password| {
            let by_sudo = Root::SudoWith(password);
            let output = try_sudo(&by_sudo, board, survey)?;
            let is_right = output.code == 0;
            refusal = output.error_text();
            root = is_right.then_some(by_sudo);
            Ok::<bool, StepError>(is_right)
        })?;
        match answer {
            Answer::Right => Ok(root),
            Answer::Wrong => Err(StepError::Refused {
                what: "sudo on the board does not take the password",
                why: refusal,
            }),
            Answer::None => Err(StepError::Refused {
                what: "sudo on the board requires a password",
                why: refusal,
            }),
        }
    }

    /// Copies a package to the board. Calls `sent` with the number of copied bytes.
    ///
    /// # Errors
    /// Returns an error when the disk is full or read-only, or the link is lost.
    pub(crate) fn copy(&self, package: &Package, sent: &mut dyn FnMut(u64)) -> Result<(), StepError> {
        let script = Script {
            doing: "copying the package",
            text: include_str!("scripts/receive.sh"),
            words: &[&self.cache, Package::copy_name(self.way), &package.sha256],
        };
        let mut file = regular_file::open(&package.path).map_err(StepError::Package)?;
        let output = script.feed(self.board, &mut file, sent)?;
        accepted(&output, "the package cannot be written to the board")
    }

    /// Installs the copied package. Both packages restore the previous version when their own does not start.
    ///
    /// # Errors
    /// Returns the message of dpkg or of the archive's installer.
    pub(crate) fn install(&self, package: &Package) -> Result<(), StepError> {
        let text = match self.way {
            InstallMethod::System => include_str!("scripts/install_system.sh"),
            InstallMethod::User => include_str!("scripts/install_user.sh"),
        };
        let copy = format!("{}/{}", self.cache, Package::copy_name(self.way));
        let words = [copy.as_str(), &package.sha256];
        let output = self.by_root("installing the package", text, &words, &mut io::empty())?;
        accepted(&output, "the package is not installed")
    }

    /// Reads a text file of the board. Returns an empty text when there is none.
    ///
    /// # Errors
    /// Returns an error when the link is lost.
    pub(crate) fn read(&self, path: &str) -> Result<String, StepError> {
        let output = self.by_root(
            "reading its configuration",
            include_str!("scripts/read.sh"),
            &[path],
            &mut io::empty(),
        )?;
        accepted(&output, "the configuration cannot be read")?;
        Ok(output.out)
    }

    /// Replaces the configuration.
    ///
    /// # Errors
    /// Returns an error when the disk is full or read-only, or the link is lost.
    pub(crate) fn configure(&self, text: &str) -> Result<(), StepError> {
        let output = self.by_root(
            "writing its configuration",
            include_str!("scripts/configure.sh"),
            &[&self.places.config],
            &mut text.as_bytes(),
        )?;
        accepted(&output, "the configuration cannot be written")
    }

    /// Enrolls the board with a token.
    ///
    /// # Errors
    /// Returns the agent's message.
    pub(crate) fn enroll(&self, token: &str) -> Result<(), StepError> {
        let Places {
            program,
            config,
            state,
            owner,
        } = &self.places;
        let output = self.by_root(
            "enrolling it",
            include_str!("scripts/enroll.sh"),
            &[program, config, state, owner],
            &mut format!("{token}\n").as_bytes(),
        )?;
        accepted(&output, "the board is not enrolled")
    }

    /// Returns whether the daemon runs.
    ///
    /// # Errors
    /// Returns an error when the link is lost.
    pub(crate) fn is_running(&self) -> Result<bool, StepError> {
        Ok(self.service("watch")?.code == 0)
    }

    /// Starts (`start`) or restarts (`restart`) the daemon. Returns a note for the user, if there is one.
    ///
    /// # Errors
    /// Returns systemd's message.
    pub(crate) fn start(&self, verb: &'static str) -> Result<Option<String>, StepError> {
        let output = self.service(verb)?;
        accepted(&output, "the daemon does not start")?;
        let note = output.out.lines().find_map(|line| line.strip_prefix("note: "));
        Ok(note.map(str::to_owned))
    }

    /// Returns the last lines of the daemon's log.
    pub(crate) fn log(&self) -> String {
        self.service("log")
            .map(|output| last_lines(&output.out))
            .unwrap_or_default()
    }

    /// Restores the previous configuration, enrollment and, if `installed`, the previous program, and starts it.
    ///
    /// # Errors
    /// Returns an error when that fails, most often because the link is lost.
    pub(crate) fn undo(&self, installed: bool) -> Result<(), StepError> {
        let Places {
            program,
            config,
            state,
            owner,
        } = &self.places;
        let what = if installed { "installed" } else { "as-it-was" };
        let output = self.by_root(
            "rolling back to the earlier version",
            include_str!("scripts/undo.sh"),
            &[self.scope(), program, config, state, what, owner],
            &mut io::empty(),
        )?;
        accepted(&output, "the previous version is not restored")?;
        self.start("restart").map(drop)
    }

    /// Deletes the copies that an undo would restore.
    ///
    /// # Errors
    /// Returns an error when the link is lost.
    pub(crate) fn keep(&self) -> Result<(), StepError> {
        let Places {
            config, state, owner, ..
        } = &self.places;
        self.by_root(
            "tidying up",
            include_str!("scripts/keep.sh"),
            &[config, state, owner],
            &mut io::empty(),
        )?;
        Ok(())
    }

    fn service(&self, verb: &str) -> Result<Output, LinkLost> {
        let Places {
            program,
            config,
            state,
            ..
        } = &self.places;
        self.by_root(
            "looking after its daemon",
            SERVICE,
            &[self.scope(), verb, program, config, state],
            &mut io::empty(),
        )
    }

    fn by_root(
        &self,
        doing: &str,
        text: &str,
        words: &[&str],
        input: &mut dyn io::Read,
    ) -> Result<Output, LinkLost> {
        Script { doing, text, words }.run_as(self.root.as_ref(), self.board, input)
    }

    const fn scope(&self) -> &'static str {
        match self.way {
            InstallMethod::System => "system",
            InstallMethod::User => "user",
        }
    }
}

/// Runs `true` under sudo.
///
/// # Errors
/// Returns an error for a user that sudo does not allow, because no password helps then.
fn try_sudo(root: &Root, board: &dyn Board, survey: &Survey) -> Result<Output, StepError> {
    let check = Script {
        doing: "trying sudo",
        text: "true",
        words: &[],
    };
    let output = check.run_as(Some(root), board, &mut io::empty())?;
    // The messages of sudo, in older and newer versions.
    let refusals = [
        "is not in the sudoers file",
        "is not allowed to",
        "may not run sudo",
    ];
    if refusals.iter().any(|words| output.err.contains(words)) {
        return Err(StepError::NoSudoer {
            user: survey.user.clone(),
        });
    }
    Ok(output)
}

fn accepted(output: &Output, what: &'static str) -> Result<(), StepError> {
    if output.code == 0 {
        return Ok(());
    }
    Err(StepError::Refused {
        what,
        why: output.error_text(),
    })
}

#[cfg(test)]
mod tests;
