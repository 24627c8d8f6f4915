//! What connects a lab with its devices: the broker, the coordinator's own MQTT link, keys and certificates, enrollment, assets over HTTPS, and
//! the members that may connect. It works on connections and knows no runs.

pub mod assets;
pub mod broker;
pub mod descriptors;
pub mod enrollment;
pub mod fair_slots;
pub mod fleet;
pub mod handshake_limiter;
pub mod keys;
pub mod link;
pub mod port_holder;
pub mod token_bucket;
