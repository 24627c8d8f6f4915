//! The embedded broker's one hook into what devices publish: a retained message passes [`Retained`], any other [`Intake`].

use std::{future::Future, pin::Pin};

use mqtt5::broker::{BrokerEventHandler, ClientPublishEvent, PublishAction};

use super::{intake::Intake, retained::Retained};

/// Both, in the order in which they are asked.
pub(super) struct Hook {
    retained: Retained,
    intake: Intake,
}

impl Hook {
    /// A hook that hands logs to `intake`.
    pub(super) fn new(intake: Intake) -> Self {
        Self {
            retained: Retained::default(),
            intake,
        }
    }
}

impl BrokerEventHandler for Hook {
    fn on_client_publish<'a>(
        &'a self,
        event: ClientPublishEvent,
    ) -> Pin<Box<dyn Future<Output = PublishAction> + Send + 'a>> {
        if event.retain {
            self.retained.on_client_publish(event)
        } else {
            self.intake.on_client_publish(event)
        }
    }
}
