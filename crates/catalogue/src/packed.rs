//! Files that `build.rs` packs into the binaries, unpacked at first use. This module does not parse them.

use std::{io::Read as _, sync::OnceLock};

use flate2::read::DeflateDecoder;

/// The files of one directory as `build.rs` packs them: `NAME \0 TEXT \0` for each, deflated.
#[derive(Debug)]
pub(crate) struct Packed {
    bytes: &'static [u8],
    files: OnceLock<Vec<Carried>>,
}

/// An embedded file.
#[derive(Debug)]
pub(crate) struct Carried {
    /// Its name without the extension.
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Packed {
    /// Wraps the packed bytes.
    pub(crate) const fn new(bytes: &'static [u8]) -> Self {
        Self {
            bytes,
            files: OnceLock::new(),
        }
    }

    /// Returns the files, ordered by name. Unpacks them at the first call.
    pub(crate) fn files(&'static self) -> &'static [Carried] {
        self.files.get_or_init(|| {
            let mut all = String::new();
            #[expect(
                clippy::expect_used,
                reason = "the bytes were packed by build.rs in this very build"
            )]
            DeflateDecoder::new(self.bytes)
                .read_to_string(&mut all)
                .expect("what was packed unpacks");
            let mut parts = all.split_terminator('\0').map(str::to_owned);
            let mut files = Vec::new();
            while let (Some(name), Some(text)) = (parts.next(), parts.next()) {
                files.push(Carried { name, text });
            }
            files
        })
    }
}
