//! The documents of a run: the request, the device's evidence, and the coordinator's record. Also the record of a power session.
//!
//! Every document carries a `schema` number. Readers accept every number up to their own, and refuse newer ones with an error that names
//! them. New fields always have a default. The benchmark inside a [`RunSpec`] is the exception. A device that does not know one of its
//! fields refuses the run, because ignoring it could change what is measured. Documents are hashed and signed over their exact bytes. They
//! are passed on as received and never re-serialised.

mod audit;
mod device_state;
pub mod document_name;
mod evidence;
mod gate;
mod judgement;
mod meter_settings;
mod power_session;
mod record;
mod run_end;
mod run_marker;
mod run_spec;
mod run_state;
mod system_use;

pub use audit::{AccuracyDelta, AuditResult, AuditedResponses, AuditedScores, LimitedDirection};
pub use device_state::{ControlProof, StateFinding, StateProof, StateSpec, Telemetry};
pub use evidence::{
    Attempt, Clock, DeviceFacts, Evidence, FileProof, GpuFacts, LoadgenIdentity, SoftwareFacts, TimingThread,
    WindowCost,
};
pub use gate::{GateProof, GateSpec, celsius, gibibytes};
pub use judgement::{Judgement, Metric, Rates, RunTiming};
pub use meter_settings::MeterSettings;
pub use power_session::{
    LateTransfer, OfficialCheck, PowerSessionRecord, PowerVerdict, RecordedFailure, SessionEnergy,
    SessionMeter, SessionObservation, SessionRails, SessionRuns, SessionStep,
};
pub use record::{AccuracyResult, DeliveryProof, FurtherFigure, Record, StreamProof};
pub use run_end::{EndCause, end_reason};
pub use run_marker::{RunMarker, SubmissionObstacle};
pub use run_spec::{
    AuditOf, ConfTexts, Delivery, EngineSpec, LoadgenChoice, RunLength, RunSpec, RunTask, TUNING_TIME,
    is_same_commit,
};
pub use run_state::{RunPhase, RunState};
pub use system_use::{PowerSetting, SystemUse};

pub use crate::EngineKind;

use serde::de::DeserializeOwned;

/// The error for a document that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// The bytes are not JSON, or a field is missing or of the wrong type.
    #[error("the {kind} is not a well-formed document")]
    Malformed {
        /// The kind of document.
        kind: &'static str,
        /// The position and the cause.
        #[source]
        source: serde_json::Error,
    },
    /// A newer Regatta wrote the document.
    #[error("the {kind} has schema {found}; this program reads up to {known}: update it")]
    TooNew {
        /// The kind of document.
        kind: &'static str,
        /// The document's schema number.
        found: u16,
        /// The newest schema number that this program reads.
        known: u16,
    },
}

/// A JSON document with a schema number.
pub trait Document: DeserializeOwned {
    /// The name of the kind of document in messages.
    const KIND: &'static str;
    /// The schema number that this program writes, and the newest that it reads.
    const SCHEMA: u16;

    /// Returns the schema number of this document.
    fn schema(&self) -> u16;

    /// Parses a document and refuses newer schemas.
    ///
    /// # Errors
    /// [`DocumentError`] when the bytes are not such a document or come from a newer program.
    fn from_json(bytes: &[u8]) -> Result<Self, DocumentError> {
        #[derive(serde::Deserialize)]
        struct SchemaOnly {
            schema: u16,
        }
        let malformed = |source| DocumentError::Malformed {
            kind: Self::KIND,
            source,
        };
        let found = serde_json::from_slice::<SchemaOnly>(bytes)
            .map_err(malformed)?
            .schema;
        if found > Self::SCHEMA {
            return Err(DocumentError::TooNew {
                kind: Self::KIND,
                found,
                known: Self::SCHEMA,
            });
        }
        serde_json::from_slice(bytes).map_err(malformed)
    }
}

macro_rules! document {
    ($name:ty, $kind:literal, $schema:literal) => {
        impl crate::documents::Document for $name {
            const KIND: &'static str = $kind;
            const SCHEMA: u16 = $schema;
            fn schema(&self) -> u16 {
                self.schema
            }
        }
    };
}
pub(crate) use document;
