//! A file that a browser stores instead of showing it, because a device or another program wrote it.

use std::{fs::File, io, path::Path};

use axum::{
    body::Body,
    http::{HeaderValue, header},
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use futures_util::stream;
use regatta_fsutil::regular_file;
use tokio::io::AsyncReadExt as _;

/// The size of a part in bytes.
const PART: usize = 64 * 1024;

/// An open file.
pub(super) struct Download {
    name: String,
    length: u64,
    file: File,
}

impl Download {
    /// Opens a regular file. The browser stores it under `name`.
    ///
    /// # Errors
    /// Returns an error when it cannot be opened.
    pub(super) fn open(path: &Path, name: &str) -> io::Result<Self> {
        let file = regular_file::open(path)?;
        Ok(Self {
            name: name.to_owned(),
            length: file.metadata()?.len(),
            file,
        })
    }

    /// Sends the file. The rules for browsers in [`super::protection`] forbid guessing its type.
    pub(super) fn into_response(self) -> Response {
        let file = tokio::fs::File::from_std(self.file).take(self.length);
        let parts = stream::unfold(file, |mut file| async move {
            let mut part = vec![0; PART];
            match file.read(&mut part).await {
                Ok(0) => None,
                Ok(read) => {
                    part.truncate(read);
                    Some((Ok(Bytes::from(part)), file))
                }
                Err(error) => Some((Err(error), file)),
            }
        });
        let mut response = Body::from_stream(parts).into_response();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("application/octet-stream"),
        );
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(self.length));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        let name: String = self
            .name
            .chars()
            .map(|c| if is_plain(c) { c } else { '_' })
            .collect();
        let disposition = format!("attachment; filename=\"{name}\"");
        if let Ok(disposition) = HeaderValue::from_str(&disposition) {
            headers.insert(header::CONTENT_DISPOSITION, disposition);
        }
        response
    }
}
