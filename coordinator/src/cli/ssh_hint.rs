//! The hint for a failed SSH connection, in the options of the commands that connect. Connects to nothing.

use regatta_ssh::SshError;

/// Returns the hint about a failed connection.
pub(super) fn ssh_hint(error: &SshError) -> Option<String> {
    match error {
        SshError::Unknown { fingerprint, .. } => Some(format!(
            "compare it with `ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` on the board, then --accept-host-key {fingerprint}"
        )),
        SshError::Changed { name, .. } => Some(format!(
            "if the board was flashed again, `ssh-keygen -R '{name}'` forgets the old key"
        )),
        SshError::Login { .. } => {
            Some("--identity FILE names a key; --password-stdin reads a password".to_owned())
        }
        SshError::Ended { .. } => Some(
            "it does so after some wrong passwords, and when nobody answers for two minutes: run the same command again"
                .to_owned(),
        ),
        _ => None,
    }
}
