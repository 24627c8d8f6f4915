//! Reads the keywords of `~/.ssh/config` that Regatta needs: `HostName`, `User`, `Port`, `IdentityFile` and `ProxyJump` in `Host`
//! blocks. The first match wins. `Match` blocks and `Include` are ignored.

use std::{env, io, path::Path};

use regatta_fsutil::regular_file::{self, MAX_TEXT};

use crate::{
    access::Access,
    destination::{Destination, DestinationError},
};

/// The maximum number of jump hosts in a row.
const MAX_WAY: usize = 4;

/// The lines of a configuration, in order.
#[derive(Debug, Clone, Default)]
pub struct SshConfig {
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Default)]
struct Block {
    /// The patterns of `Host`. `None` for a block that never matches.
    patterns: Option<Vec<String>>,
    settings: Vec<(String, String)>,
}

/// The command line's options, which override the file.
#[derive(Debug, Clone, Default)]
pub struct AccessOptions {
    /// The login's user.
    pub user: Option<String>,
    pub port: Option<u16>,
    /// Key files.
    pub identities: Vec<std::path::PathBuf>,
    /// The jump host.
    pub jump: Option<Destination>,
}

impl SshConfig {
    /// Reads the user's own file. Returns an empty configuration when there is none.
    ///
    /// # Errors
    /// Returns an error when the file exists and cannot be read. Without it, the wrong address might be used.
    pub fn of_user() -> io::Result<Self> {
        let Some(path) = env::home_dir().map(|home| home.join(".ssh/config")) else {
            return Ok(Self::default());
        };
        match regular_file::read(&path, MAX_TEXT) {
            Ok(text) => Ok(Self::from_text(&String::from_utf8_lossy(&text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(io::Error::new(
                error.kind(),
                format!("{}: {error}", path.display()),
            )),
        }
    }

    fn from_text(text: &str) -> Self {
        let mut blocks = vec![Block {
            patterns: Some(vec!["*".to_owned()]),
            settings: Vec::new(),
        }];
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
            let Some((key, value)) = line.split_once(|c: char| c.is_whitespace() || c == '=') else {
                continue;
            };
            let value = value
                .trim_start_matches(|c: char| c.is_whitespace() || c == '=')
                .trim();
            match key.to_ascii_lowercase().as_str() {
                "host" => blocks.push(Block {
                    patterns: Some(value.split_whitespace().map(str::to_owned).collect()),
                    settings: Vec::new(),
                }),
                "match" => blocks.push(Block::default()),
                key => {
                    if let Some(block) = blocks.last_mut() {
                        let value = value.trim_matches('"').to_owned();
                        block.settings.push((key.to_owned(), value));
                    }
                }
            }
        }
        Self { blocks }
    }

    fn get<'a>(&'a self, host: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
        let fits = move |block: &&Block| {
            block
                .patterns
                .as_ref()
                .is_some_and(|patterns| is_among(host, patterns))
        };
        self.blocks
            .iter()
            .filter(fits)
            .flat_map(|block| &block.settings)
            .filter(move |(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// Returns the access to a destination.
    ///
    /// # Errors
    /// Returns an error for an invalid `Port`, or a `ProxyJump` that is invalid or circular.
    pub fn access(&self, to: &Destination, over: &AccessOptions) -> Result<Access, DestinationError> {
        self.access_within(to, over, MAX_WAY)
    }

    fn access_within(
        &self,
        to: &Destination,
        over: &AccessOptions,
        left: usize,
    ) -> Result<Access, DestinationError> {
        let first = |key| self.get(&to.host, key).next();
        let jump = match &over.jump {
            Some(jump) => Some(jump.clone()),
            None => match first("proxyjump").filter(|&jump| jump != "none") {
                // Only the last of several jump hosts is used, which is next to the board. Its own entry has its address.
                Some(jump) => Some(jump.rsplit(',').next().unwrap_or(jump).parse()?),
                None => None,
            },
        };
        let jump = match jump {
            Some(_) if left == 0 => {
                return Err(DestinationError::Circle(to.host.clone()));
            }
            Some(jump) => {
                let over = AccessOptions {
                    identities: over.identities.clone(),
                    ..AccessOptions::default()
                };
                Some(Box::new(self.access_within(&jump, &over, left - 1)?))
            }
            None => None,
        };
        let user = over
            .user
            .clone()
            .or_else(|| to.user.clone())
            .or_else(|| first("user").map(str::to_owned))
            .or_else(|| env::var("USER").ok())
            .unwrap_or_else(|| "root".to_owned());
        let named = first("port").map(|port| {
            let not_one = |_| DestinationError::Port(port.to_owned(), to.host.clone());
            port.parse().map_err(not_one)
        });
        let port = match over.port.or(to.port) {
            Some(port) => port,
            None => named.transpose()?.unwrap_or(22),
        };
        let mut identities = over.identities.clone();
        if identities.is_empty() {
            identities = self.get(&to.host, "identityfile").map(expanded).collect();
        }
        Ok(Access {
            user,
            host: first("hostname").unwrap_or(&to.host).replace("%h", &to.host),
            port,
            identities,
            jump,
        })
    }
}

/// Matches `Host` patterns: `*` and `?`, and `!` to exclude a host.
fn is_among(host: &str, patterns: &[String]) -> bool {
    let mut fits = false;
    for pattern in patterns {
        match pattern.strip_prefix('!') {
            Some(pattern) if is_like(host.as_bytes(), pattern.as_bytes()) => return false,
            Some(_) => {}
            None => fits |= is_like(host.as_bytes(), pattern.as_bytes()),
        }
    }
    fits
}

/// Returns whether a text matches a pattern of `*` and `?`.
pub(super) fn is_like(text: &[u8], pattern: &[u8]) -> bool {
    // The position of the last `*`, and how much of the text it has matched so far.
    let (mut t, mut p, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == b'?' || text.get(t) == Some(&c) => {
                t += 1;
                p += 1;
            }
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    t = taken + 1;
                    p = at + 1;
                }
                None => return false,
            },
        }
    }
    pattern.get(p..).unwrap_or_default().iter().all(|&c| c == b'*')
}

fn expanded(path: &str) -> std::path::PathBuf {
    match (path.strip_prefix("~/"), env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => Path::new(path).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "User everybody\nHost orin*  !orin-9\n  HostName=10.0.0.%h\n  Port 2222\n  ProxyJump gate:2022\n  IdentityFile \"/keys/orin\"\nHost gate\n  User guard\nMatch all\n  Port 1\nHost loop\n  ProxyJump loop\n";

    fn access(to: &str, over: &AccessOptions) -> Result<Access, DestinationError> {
        SshConfig::from_text(FILE).access(&to.parse().unwrap(), over)
    }

    #[test]
    fn the_file_fills_what_the_command_line_leaves_open() {
        let orin = access("me@orin-1", &AccessOptions::default()).unwrap();
        assert_eq!(orin.to_string(), "me@10.0.0.orin-1 port 2222");
        assert_eq!(orin.identities, [Path::new("/keys/orin")]);
        assert_eq!(orin.jump.unwrap().to_string(), "everybody@gate port 2022");
        let other = access("orin-9", &AccessOptions::default()).unwrap();
        assert_eq!(
            (other.to_string().as_str(), other.jump),
            ("everybody@orin-9", None)
        );
        let over = AccessOptions {
            port: Some(22),
            identities: vec!["/mine".into()],
            jump: Some("gate".parse().unwrap()),
            ..AccessOptions::default()
        };
        let orin = access("me@orin-1", &over).unwrap();
        assert_eq!(orin.to_string(), "me@10.0.0.orin-1");
        assert_eq!(orin.identities, [Path::new("/mine")]);
        assert_eq!(orin.jump.unwrap().port, 22);
    }

    #[test]
    fn circular_jumps_end_and_a_malformed_port_is_an_error() {
        assert!(access("loop", &AccessOptions::default()).is_err());
        let odd = SshConfig::from_text("Host odd\n  Port ssh\n");
        let to: Destination = "odd".parse().unwrap();
        let refused = odd.access(&to, &AccessOptions::default()).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`ssh`, the Port of `odd` in ~/.ssh/config, is not a port"
        );
        let over = AccessOptions {
            port: Some(2222),
            ..AccessOptions::default()
        };
        assert_eq!(odd.access(&to, &over).unwrap().port, 2222);
    }

    proptest::proptest! {
        #[test]
        fn any_file_reads(text in "(?s).{0,200}", host in "[a-z.*?]{1,12}") {
            let config = SshConfig::from_text(&text);
            let to = Destination { user: None, host: host.clone(), port: None };
            let _ = config.access(&to, &AccessOptions::default());
            proptest::prop_assert!(is_like(host.as_bytes(), b"*"));
        }
    }
}
