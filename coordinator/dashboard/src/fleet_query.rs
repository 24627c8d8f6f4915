//! The devices that the fleet page shows, and their order: the query of its URL. It does not look at devices.

use form_urlencoded::Serializer;

use super::query_words::{InvalidQuery, one_of, short};
use regatta_lab_store::{DeviceActivity, DeviceHealth};

/// A column by which devices are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SortKey {
    /// The name, numbers in it by value.
    #[default]
    Name,
    State,
    /// The health, the worst last.
    Health,
    /// The time for which the current run has been measured.
    Run,
    /// The number of waiting runs.
    Queued,
    Temperature,
    /// The CPU's clock.
    Clock,
    /// The board's power.
    Power,
}

impl SortKey {
    /// Every key.
    pub const ALL: [Self; 8] = [
        Self::Name,
        Self::State,
        Self::Health,
        Self::Run,
        Self::Queued,
        Self::Temperature,
        Self::Clock,
        Self::Power,
    ];

    /// Returns the word in the query.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::State => "state",
            Self::Health => "health",
            Self::Run => "run",
            Self::Queued => "queued",
            Self::Temperature => "temperature",
            Self::Clock => "clock",
            Self::Power => "power",
        }
    }
}

/// The query of the fleet page. The default shows every device by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FleetQuery {
    /// The column to sort by.
    pub sort: SortKey,
    /// Whether the order is reversed.
    pub is_descending: bool,
    /// A text that name, id, board or label has, in lower case.
    pub text: String,
    /// The only state.
    pub state: Option<DeviceActivity>,
    /// The only health.
    pub health: Option<DeviceHealth>,
    /// A label that every device has.
    pub label: String,
}

impl FleetQuery {
    /// Parses a URL's query. Unknown names are ignored, because browsers and proxies add some.
    ///
    /// # Errors
    /// Returns [`InvalidQuery`] for a known name with an unknown value.
    pub(super) fn parse(query: &str) -> Result<Self, InvalidQuery> {
        let mut parsed = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "sort" => {
                    let found = one_of("sort", &value, &SortKey::ALL, SortKey::as_str)?;
                    parsed.sort = found.unwrap_or_default();
                }
                "order" => {
                    parsed.is_descending = one_of("order", &value, &[false, true], order)? == Some(true)
                }
                "state" => {
                    parsed.state = one_of("state", &value, &DeviceActivity::ALL, DeviceActivity::as_str)?
                }
                "health" => {
                    parsed.health = one_of("health", &value, &DeviceHealth::ALL, DeviceHealth::as_str)?
                }
                "text" => parsed.text = short(&value).to_lowercase(),
                "label" => parsed.label = short(&value).to_owned(),
                _ => {}
            }
        }
        Ok(parsed)
    }

    /// Returns the query's text without default values.
    pub fn to_query(&self) -> String {
        let default = Self::default();
        let mut query = Serializer::new(String::new());
        if self.sort != default.sort {
            query.append_pair("sort", self.sort.as_str());
        }
        if self.is_descending {
            query.append_pair("order", "down");
        }
        let words = [
            ("text", Some(self.text.as_str())),
            ("state", self.state.map(DeviceActivity::as_str)),
            ("health", self.health.map(DeviceHealth::as_str)),
            ("label", Some(self.label.as_str())),
        ];
        for (name, value) in words {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                query.append_pair(name, value);
            }
        }
        query.finish()
    }

    /// Returns the query that sorts by a column: the other way round if it is sorted by that column now.
    pub fn sorted_by(&self, sort: SortKey) -> Self {
        Self {
            is_descending: self.sort == sort && !self.is_descending,
            sort,
            ..self.clone()
        }
    }

    /// Returns whether it shows every device.
    pub fn is_unfiltered(&self) -> bool {
        self.text.is_empty() && self.label.is_empty() && self.state.is_none() && self.health.is_none()
    }
}

/// Returns the word for a direction of the order.
const fn order(is_descending: bool) -> &'static str {
    if is_descending { "down" } else { "up" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_reads_and_prints() {
        let text = "sort=temperature&order=down&text=orin+%26+co&state=busy&health=good&label=lab-2";
        let query = FleetQuery::parse(text).unwrap();
        assert_eq!(
            (query.text.as_str(), query.state),
            ("orin & co", Some(DeviceActivity::Busy))
        );
        assert_eq!(query.to_query(), text);
        assert_eq!(FleetQuery::default().to_query(), "");
        assert_eq!(
            FleetQuery::parse("state=&text=&utm=1").unwrap(),
            FleetQuery::default()
        );
        assert_eq!(
            query.sorted_by(SortKey::Temperature).to_query(),
            text.replace("&order=down", "")
        );
    }

    #[test]
    fn an_unknown_value_is_refused_with_the_known_ones() {
        let refused = FleetQuery::parse("state=sleepy").unwrap_err();
        assert_eq!(
            refused.to_string(),
            "`state` is one of: idle, busy, offline, duplicated"
        );
        assert!(FleetQuery::parse("sort=%3Cscript%3E").is_err());
    }

    proptest::proptest! {
        #[test]
        fn a_printed_query_reads_as_itself(text in proptest::string::string_regex("(?s).{0,64}").unwrap()) {
            let query = FleetQuery { text: short(&text.to_lowercase()).trim().to_owned(), label: "a".to_owned(), ..FleetQuery::default() };
            let read = FleetQuery::parse(&query.to_query()).unwrap();
            proptest::prop_assert_eq!(read.text, query.text.to_lowercase());
        }
    }
}
