//! What people and programs read about a lab: JSON documents, comparisons and histories, look-ups by name, events, and the wording of facts. It
//! changes nothing and knows neither terminal nor HTML.

pub mod comparisons;
pub mod documents;
pub mod events;
pub mod lookup;
pub mod operations;
pub mod submission_status;
pub mod wording;
