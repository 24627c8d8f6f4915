//! The category in which a system is submitted. It determines the required scenarios.

use std::{fmt, str::FromStr};

use regatta_types::UnknownWord;

/// The category of a system (`submission_rules.adoc`, "System type").
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SystemCategory {
    #[default]
    Edge,
    Datacenter,
    /// Both categories.
    Both,
}

impl SystemCategory {
    pub const ALL: [Self; 3] = [Self::Edge, Self::Datacenter, Self::Both];

    /// Returns the value of `system_type` in the system's description.
    #[must_use]
    pub const fn system_type(self) -> &'static str {
        match self {
            Self::Edge => "edge",
            Self::Datacenter => "datacenter",
            Self::Both => "datacenter,edge",
        }
    }
}

impl fmt::Display for SystemCategory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.system_type())
    }
}

impl FromStr for SystemCategory {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        match text.to_ascii_lowercase().as_str() {
            "edge" => Ok(Self::Edge),
            "datacenter" => Ok(Self::Datacenter),
            "datacenter,edge" | "edge,datacenter" => Ok(Self::Both),
            _ => Err(UnknownWord {
                kind: "category",
                text: text.to_owned(),
                known: "edge, datacenter, \"datacenter,edge\"",
            }),
        }
    }
}
