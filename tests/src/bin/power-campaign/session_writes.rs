//! Which closed files the official programs of a session, and the run process, wrote. The machines of a lab have a disk each, so the path tells
//! the machine.

use std::path::Path;

use regatta_tests::faults::write_log::{ClosedFile, WrittenFile, file_of_run, present_name};

/// The writer of a session's files, by the place of the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The directory of the official server.
    Server,
    /// The output of the official client on a machine of its own.
    RemoteClient,
    /// The session in the workspace: the client's output, if the client is on the coordinator's machine.
    Workspace,
}

impl Place {
    const ALL: [Self; 3] = [Self::Server, Self::RemoteClient, Self::Workspace];

    /// Returns the name under which the account has the files of a session in this place.
    pub(crate) fn owner(self, session: &str) -> String {
        format!("{session}/{self:?}")
    }
}

/// Returns the session of an owner of [`Place::owner`].
pub(crate) fn session_of(owner: &str) -> Option<&str> {
    let (session, place) = owner.split_once('/')?;
    Place::ALL
        .iter()
        .any(|one| format!("{one:?}") == place)
        .then_some(session)
}

/// Recognises a file of a run of the agent, whose runs are in `runs`, or of a session.
pub(crate) fn recognise(runs: &Path, path: &Path, command_line: &str) -> ClosedFile {
    match file_of_run(runs, path, command_line) {
        ClosedFile::Other => file_of_session(path).map_or(ClosedFile::Other, ClosedFile::Written),
        of_run => of_run,
    }
}

fn file_of_session(path: &Path) -> Option<WrittenFile> {
    let parts: Vec<&str> = path.iter().map(|part| part.to_str()).collect::<Option<_>>()?;
    let (place, session, part, file) = match *parts.as_slice() {
        [.., "regatta-power", name, "tmp", _, _, part, file] => {
            (Place::Server, name.strip_suffix("-director")?, part, file)
        }
        [.., "power", session, "tmp", _, _, part, file] => (Place::Server, session, part, file),
        [.., "regatta-power", name, "session", part, file] => {
            (Place::RemoteClient, name.strip_suffix("-device")?, part, file)
        }
        [.., "power", session, "session", part, file] => (Place::Workspace, session, part, file),
        _ => return None,
    };
    // The client receives files under temporary names.
    let (file, _) = present_name(file);
    let (file, is_replacement) = match file.strip_suffix(".tmp") {
        Some(file) => (file, true),
        None => (file, false),
    };
    Some(WrittenFile {
        owner: place.owner(session),
        name: format!("{part}/{file}"),
        is_replacement,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_sessions_are_recognised_by_their_paths() {
        let of = |path: &str| match recognise(Path::new("/lab/runs"), Path::new(path), "") {
            ClosedFile::Written(file) => Some((file.owner, file.name, file.is_replacement)),
            _ => None,
        };
        let file = |owner: &str, name: &str, is_replacement| {
            Some((owner.to_owned(), name.to_owned(), is_replacement))
        };
        let server = file("s1/Server", "run_1/spl.txt", false);
        assert_eq!(
            of("/director/home/regatta-power/s1-director/tmp/x/2026/run_1/spl.txt"),
            server
        );
        assert_eq!(
            of("/lab/workspace/power/s1/tmp/x/2026/run_1/spl.txt (deleted)"),
            server
        );
        assert_eq!(
            of("/device/home/regatta-power/s1-device/session/power/client.json"),
            file("s1/RemoteClient", "power/client.json", false)
        );
        assert_eq!(
            of("/lab/workspace/power/s1/session/power/server.log.tmp"),
            file("s1/Workspace", "power/server.log", true)
        );
        assert_eq!(of("/lab/runs/r1/files/run.log"), file("r1", "run.log", false));
        assert_eq!(of("/lab/workspace/power/s1/session.json"), None);
        assert_eq!(
            of("/device/home/regatta-power/s1-device/loadgen/ranging/a.txt"),
            None
        );
    }

    #[test]
    fn owners_name_their_sessions() {
        assert_eq!(session_of(&Place::Server.owner("s1")), Some("s1"));
        assert_eq!(session_of("r1"), None);
    }
}
