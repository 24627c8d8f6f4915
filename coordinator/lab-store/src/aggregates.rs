//! Access to the aggregates of the store. Each type contains the statements on some tables, and uses the store's connection. Within
//! [`Store::all_or_nothing`], the statements are part of its transaction.

use super::{
    Assets, Attempts, CampaignLog, Campaigns, Cells, DeviceChecks, DeviceLabels, Devices, EnrollmentTokens,
    Examinations, Health, HeardSessions, Members, Meters, Numbers, PageTokens, PowerSessions, RemovedRuns,
    Rollouts, Runs, Service, StagedRuns, Store, Streams, UnknownRuns,
};

impl Store {
    pub const fn assets(&self) -> Assets<'_> {
        Assets { store: self }
    }

    pub const fn attempts(&self) -> Attempts<'_> {
        Attempts { store: self }
    }

    pub const fn campaign_log(&self) -> CampaignLog<'_> {
        CampaignLog { store: self }
    }

    pub const fn campaigns(&self) -> Campaigns<'_> {
        Campaigns { store: self }
    }

    pub const fn cells(&self) -> Cells<'_> {
        Cells { store: self }
    }

    pub const fn device_checks(&self) -> DeviceChecks<'_> {
        DeviceChecks { store: self }
    }

    pub const fn devices(&self) -> Devices<'_> {
        Devices { store: self }
    }

    pub const fn enrollment_tokens(&self) -> EnrollmentTokens<'_> {
        EnrollmentTokens { store: self }
    }

    pub const fn examinations(&self) -> Examinations<'_> {
        Examinations { store: self }
    }

    pub const fn health(&self) -> Health<'_> {
        Health { store: self }
    }

    pub const fn heard_sessions(&self) -> HeardSessions<'_> {
        HeardSessions { store: self }
    }

    pub const fn labels(&self) -> DeviceLabels<'_> {
        DeviceLabels { store: self }
    }

    pub const fn members(&self) -> Members<'_> {
        Members { store: self }
    }

    pub const fn meters(&self) -> Meters<'_> {
        Meters { store: self }
    }

    pub const fn numbers(&self) -> Numbers<'_> {
        Numbers { store: self }
    }

    pub const fn page_tokens(&self) -> PageTokens<'_> {
        PageTokens { store: self }
    }

    pub const fn power_sessions(&self) -> PowerSessions<'_> {
        PowerSessions { store: self }
    }

    pub const fn removed_runs(&self) -> RemovedRuns<'_> {
        RemovedRuns { store: self }
    }

    pub const fn rollouts(&self) -> Rollouts<'_> {
        Rollouts { store: self }
    }

    pub const fn runs(&self) -> Runs<'_> {
        Runs { store: self }
    }

    pub const fn service(&self) -> Service<'_> {
        Service { store: self }
    }

    pub const fn staged_runs(&self) -> StagedRuns<'_> {
        StagedRuns { store: self }
    }

    pub const fn streams(&self) -> Streams<'_> {
        Streams { store: self }
    }

    pub const fn unknown_runs(&self) -> UnknownRuns<'_> {
        UnknownRuns { store: self }
    }
}
