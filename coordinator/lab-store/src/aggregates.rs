//! The aggregates of the store: one type for each, over one connection. Within [`Store::all_or_nothing`] they take part in its
//! transaction.

use super::{
    Assets, Attempts, CampaignLog, Campaigns, Cells, DeviceChecks, DeviceLabels, Devices, EnrollmentTokens,
    Examinations, Health, HeardSessions, Members, Meters, Numbers, PageTokens, PowerSessions, RemovedRuns,
    Rollouts, Runs, Service, StagedRuns, Store, Streams, UnknownRuns,
};

impl Store {
    /// The added assets.
    pub const fn assets(&self) -> Assets<'_> {
        Assets { store: self }
    }

    /// The attempts at the cells of campaigns.
    pub const fn attempts(&self) -> Attempts<'_> {
        Attempts { store: self }
    }

    /// The users' requests to campaigns.
    pub const fn campaign_log(&self) -> CampaignLog<'_> {
        CampaignLog { store: self }
    }

    /// The campaigns: their plans, states and ends.
    pub const fn campaigns(&self) -> Campaigns<'_> {
        Campaigns { store: self }
    }

    /// The cells of campaigns, and the combinations that they repeat.
    pub const fn cells(&self) -> Cells<'_> {
        Cells { store: self }
    }

    /// The results of devices' checks.
    pub const fn device_checks(&self) -> DeviceChecks<'_> {
        DeviceChecks { store: self }
    }

    /// The devices, as they describe themselves.
    pub const fn devices(&self) -> Devices<'_> {
        Devices { store: self }
    }

    /// The tokens with which devices enroll.
    pub const fn enrollment_tokens(&self) -> EnrollmentTokens<'_> {
        EnrollmentTokens { store: self }
    }

    /// The requests that devices examine themselves, and the answers.
    pub const fn examinations(&self) -> Examinations<'_> {
        Examinations { store: self }
    }

    /// The health of devices, and the log of its changes.
    pub const fn health(&self) -> Health<'_> {
        Health { store: self }
    }

    /// The sessions of agents that inventories came from.
    pub const fn heard_sessions(&self) -> HeardSessions<'_> {
        HeardSessions { store: self }
    }

    /// The labels of devices.
    pub const fn labels(&self) -> DeviceLabels<'_> {
        DeviceLabels { store: self }
    }

    /// The devices that may take part, and their certificates.
    pub const fn members(&self) -> Members<'_> {
        Members { store: self }
    }

    /// The power meters, and their leases.
    pub const fn meters(&self) -> Meters<'_> {
        Meters { store: self }
    }

    /// The series of numbers that grow over restarts.
    pub const fn numbers(&self) -> Numbers<'_> {
        Numbers { store: self }
    }

    /// The tokens that open the live page and its API.
    pub const fn page_tokens(&self) -> PageTokens<'_> {
        PageTokens { store: self }
    }

    /// The power sessions.
    pub const fn power_sessions(&self) -> PowerSessions<'_> {
        PowerSessions { store: self }
    }

    /// The removed runs that devices may still hold.
    pub const fn removed_runs(&self) -> RemovedRuns<'_> {
        RemovedRuns { store: self }
    }

    /// The upgrades of the fleet.
    pub const fn rollouts(&self) -> Rollouts<'_> {
        Rollouts { store: self }
    }

    /// The runs.
    pub const fn runs(&self) -> Runs<'_> {
        Runs { store: self }
    }

    /// The state of the serving coordinator.
    pub const fn service(&self) -> Service<'_> {
        Service { store: self }
    }

    /// The runs that submission trees hold.
    pub const fn staged_runs(&self) -> StagedRuns<'_> {
        StagedRuns { store: self }
    }

    /// The streams of runs: how much of each file is on disk.
    pub const fn streams(&self) -> Streams<'_> {
        Streams { store: self }
    }

    /// The runs that devices hold and the store does not have.
    pub const fn unknown_runs(&self) -> UnknownRuns<'_> {
        UnknownRuns { store: self }
    }
}
