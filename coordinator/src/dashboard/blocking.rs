//! Work of handlers that waits for the store.

use std::sync::Arc;

use super::{hub::Hub, page_error::PageError};

/// Runs work that waits for the store on a blocking thread.
pub(super) async fn blocking<T: Send + 'static>(
    hub: Arc<Hub>,
    work: impl FnOnce(&Hub) -> Result<T, PageError> + Send + 'static,
) -> Result<T, PageError> {
    tokio::task::spawn_blocking(move || work(&hub))
        .await
        .unwrap_or_else(|_| Err(PageError::internal()))
}
