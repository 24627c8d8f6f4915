//! Server-sent events of a watched view: everything at first, then the changes.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::response::{
    IntoResponse as _, Response,
    sse::{Event, Sse},
};
use futures_util::stream;
use tokio::{
    sync::watch,
    time::{Instant, timeout, timeout_at},
};

use super::pieces::Pieces;

/// The pause after which a comment shows that the connection lives.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// The longest connection. The browser connects again by itself.
const MAX: Duration = Duration::from_secs(3_600);

struct Connection {
    view: watch::Receiver<Arc<Pieces>>,
    sent: Option<Arc<Pieces>>,
    end: Instant,
}

/// Streams a view's changes.
pub(super) fn events(view: watch::Receiver<Arc<Pieces>>) -> Response {
    let connection = Connection {
        view,
        sent: None,
        end: Instant::now() + MAX,
    };
    let events = stream::unfold(connection, |mut connection| async move {
        let event = connection.next().await?;
        Some((Ok::<_, Infallible>(event), connection))
    });
    Sse::new(events).into_response()
}

impl Connection {
    /// Returns the next event. `None` at the end of the connection.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if self.sent.is_some() {
                let changed = timeout_at(self.end, timeout(KEEP_ALIVE, self.view.changed()))
                    .await
                    .ok()?;
                let Ok(changed) = changed else {
                    return Some(Event::default().comment("alive"));
                };
                changed.ok()?;
            }
            let now = Arc::clone(&self.view.borrow_and_update());
            let change = now.change_since(self.sent.as_deref());
            self.sent = Some(now);
            if let Some(change) = change {
                return Some(Event::default().event("pieces").data(change));
            }
        }
    }
}
