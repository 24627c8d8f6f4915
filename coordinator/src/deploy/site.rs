//! The steps that change a board, each by one script, each with its own way to fail. In which order they are taken, and what
//! happens when one fails, stands in [`super::deployment`].

use std::io;

use regatta_fsutil::regular_file;

use super::{
    board::{Board, LinkLost, Output, Root, Script, last_lines},
    install_method::InstallMethod,
    package::Package,
    secret::Secret,
    ssh::{Answer, retry_password},
    survey::{Sudo, Survey},
};

const SERVICE: &str = include_str!("scripts/service.sh");

/// A step that did not come about.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    /// The link broke.
    #[error(transparent)]
    Link(#[from] LinkLost),
    /// The package here cannot be read.
    #[error("the package cannot be read")]
    Package(#[source] io::Error),
    /// The login has no right to root's.
    #[error("{user} may not use sudo on this board, and the system service needs root's rights")]
    NoSudoer {
        /// The login.
        user: String,
    },
    /// The board said no.
    #[error("{what}: {why}")]
    Refused {
        /// What was not done.
        what: &'static str,
        /// What the board said.
        why: String,
    },
}

/// Where things lie on a board.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// The agent.
    pub(crate) program: String,
    /// Its configuration.
    pub(crate) config: String,
    /// Its key, enrolment and runs.
    pub(crate) state: String,
    /// The user who owns the state, where that is not the login; else empty. Root does nothing there: each script that reaches
    /// into the state becomes this user first.
    pub(crate) owner: &'static str,
}

impl Places {
    /// The places that a package installs to.
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

/// A board that is worked on.
pub(crate) struct Site<'a> {
    /// The link to it.
    pub(crate) board: &'a dyn Board,
    /// How root's rights are had; `None` where they are not needed.
    pub(crate) root: Option<Root>,
    /// For the system or for one user.
    pub(crate) way: InstallMethod,
    /// Where things lie.
    pub(crate) places: Places,
    /// Where packages are copied to.
    pub(crate) cache: String,
}

impl Site<'_> {
    /// Finds out how root's rights are had. `password` is asked for one where sudo wants it; it is told whether the one before
    /// was wrong.
    ///
    /// # Errors
    /// A wrong password, or a login that sudo does not know.
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
            "none was given; at a terminal it is asked for, elsewhere --password-stdin reads it".to_owned();
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
                what: "sudo on the board asks for a password",
                why: refusal,
            }),
        }
    }

    /// Copies a package; `sent` hears how much has gone.
    ///
    /// # Errors
    /// A full or read-only disk, a lost link.
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

    /// Installs the package that was copied. Both packages go back to the version before when theirs does not come up.
    ///
    /// # Errors
    /// What dpkg or the archive's installer said.
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

    /// A text file of the board; empty where there is none.
    ///
    /// # Errors
    /// A lost link.
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
    /// A full or read-only disk, a lost link.
    pub(crate) fn configure(&self, text: &str) -> Result<(), StepError> {
        let output = self.by_root(
            "writing its configuration",
            include_str!("scripts/configure.sh"),
            &[&self.places.config],
            &mut text.as_bytes(),
        )?;
        accepted(&output, "the configuration cannot be written")
    }

    /// Uses a token on the board.
    ///
    /// # Errors
    /// What the agent said.
    pub(crate) fn enrol(&self, token: &str) -> Result<(), StepError> {
        let Places {
            program,
            config,
            state,
            owner,
        } = &self.places;
        let output = self.by_root(
            "enrolling it",
            include_str!("scripts/enrol.sh"),
            &[program, config, state, owner],
            &mut format!("{token}\n").as_bytes(),
        )?;
        accepted(&output, "the board is not enrolled")
    }

    /// Whether the daemon runs.
    ///
    /// # Errors
    /// A lost link.
    pub(crate) fn is_running(&self) -> Result<bool, StepError> {
        Ok(self.service("watch")?.code == 0)
    }

    /// Starts the daemon (`start`), or starts it anew (`restart`). Returns what the user should know about it.
    ///
    /// # Errors
    /// What systemd said.
    pub(crate) fn start(&self, verb: &'static str) -> Result<Option<String>, StepError> {
        let output = self.service(verb)?;
        accepted(&output, "the daemon does not start")?;
        let note = output.out.lines().find_map(|line| line.strip_prefix("note: "));
        Ok(note.map(str::to_owned))
    }

    /// The daemon's last lines.
    pub(crate) fn log(&self) -> String {
        self.service("log")
            .map(|output| last_lines(&output.out))
            .unwrap_or_default()
    }

    /// Goes back to configuration, enrolment and, where `installed` says so, program of before, and starts that.
    ///
    /// # Errors
    /// What stands in the way: a lost link, above all.
    pub(crate) fn undo(&self, installed: bool) -> Result<(), StepError> {
        let Places {
            program,
            config,
            state,
            owner,
        } = &self.places;
        let what = if installed { "installed" } else { "as-it-was" };
        let output = self.by_root(
            "going back to what was before",
            include_str!("scripts/undo.sh"),
            &[self.scope(), program, config, state, what, owner],
            &mut io::empty(),
        )?;
        accepted(&output, "the version before is not put back")?;
        self.start("restart").map(drop)
    }

    /// Forgets what was kept for going back.
    ///
    /// # Errors
    /// A lost link.
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

/// Runs nothing by sudo.
///
/// # Errors
/// A login that sudo does not know: no password helps it.
fn try_sudo(root: &Root, board: &dyn Board, survey: &Survey) -> Result<Output, StepError> {
    let check = Script {
        doing: "trying sudo",
        text: "true",
        words: &[],
    };
    let output = check.run_as(Some(root), board, &mut io::empty())?;
    // In sudo's own words, older and newer.
    let strangers = [
        "is not in the sudoers file",
        "is not allowed to",
        "may not run sudo",
    ];
    if strangers.iter().any(|words| output.err.contains(words)) {
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
