//! Fetches TensorRT's headers from a board, and checks them before the workstation's compiler reads them.
//!
//! The compiled shim is sent back to the board, so a malicious header must not embed a file of the workstation in it. TensorRT's headers only contain
//! declarations: they include each other and the standard library, and contain no assembler.

use std::{
    fs, io,
    io::Read as _,
    path::{Component, Path},
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::GzDecoder;
use regatta_ssh::{Board, LinkLost, Script};

/// The maximum total size of the headers in bytes. Those of TensorRT 11.4 are about 1 MiB.
const MAX_SIZE: u64 = 16 << 20;

#[derive(Debug, thiserror::Error)]
pub(crate) enum HeadersError {
    #[error(transparent)]
    Link(#[from] LinkLost),
    /// The board did not send the headers.
    #[error("the board did not send TensorRT's headers: {0}")]
    Refused(String),
    /// A header contains something that TensorRT's headers do not contain.
    #[error("{name} of the board is not a header of TensorRT: {what}")]
    Foreign {
        /// The header's file name.
        name: String,
        /// The unexpected text.
        what: String,
    },
    /// The headers cannot be unpacked here.
    #[error("TensorRT's headers cannot be unpacked")]
    Unpack(#[source] io::Error),
}

/// Copies the headers from a directory of the board into a local directory.
///
/// # Errors
/// Returns [`HeadersError`].
pub(crate) fn fetch(board: &dyn Board, place: &str, into: &Path) -> Result<(), HeadersError> {
    let script = Script {
        doing: "fetching TensorRT's headers",
        text: include_str!("scripts/tensorrt_headers.sh"),
        words: &[place],
    };
    let output = script.run(board, &mut io::empty())?;
    let encoded: String = output.out.split_whitespace().collect();
    match STANDARD.decode(encoded) {
        Ok(archive) if output.code == 0 => unpack(&archive, into),
        _ => Err(HeadersError::Refused(output.error_text())),
    }
}

fn unpack(archive: &[u8], into: &Path) -> Result<(), HeadersError> {
    let mut left = MAX_SIZE;
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    for entry in archive.entries().map_err(HeadersError::Unpack)? {
        let mut entry = entry.map_err(HeadersError::Unpack)?;
        let path = entry.path().map_err(HeadersError::Unpack)?.into_owned();
        let name = path.to_string_lossy().into_owned();
        let foreign = |what: String| HeadersError::Foreign {
            name: name.clone(),
            what,
        };
        let is_name = matches!(
            path.components().collect::<Vec<_>>().as_slice(),
            [Component::Normal(_)]
        );
        if !is_name || !entry.header().entry_type().is_file() {
            return Err(foreign("it is not a file in the directory of headers".to_owned()));
        }
        left = left
            .checked_sub(entry.size())
            .ok_or_else(|| foreign(format!("the headers have more than {} MiB", MAX_SIZE >> 20)))?;
        let mut text = String::new();
        entry.read_to_string(&mut text).map_err(HeadersError::Unpack)?;
        check(&text).map_err(|line| foreign(line.to_string()))?;
        fs::write(into.join(&path), text).map_err(HeadersError::Unpack)?;
    }
    Ok(())
}

/// The beginning of a line that does not belong in a TensorRT header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}`")]
struct ForeignLine(String);

/// Checks that a header only contains declarations.
///
/// # Errors
/// Returns the first line that does not belong in a TensorRT header.
fn check(text: &str) -> Result<(), ForeignLine> {
    // A directive may continue on the next line.
    let text = text.replace("\r\n", "\n").replace("\\\n", " ");
    for line in text.lines() {
        let line = line.trim_start();
        // TensorRT pastes tokens together for one name only, in its macro for registration.
        let pasted = line.replace("pluginRegistrar##name", "").contains("##");
        // Other spellings of `#`, and other ways to continue a line.
        let disguised = ["%:", "??=", "??/"]
            .iter()
            .any(|spelling| line.contains(spelling));
        // A comment in front of a directive would hide it from the next check.
        let hidden = line.split_once("*/").is_some_and(|(_, rest)| rest.contains('#'));
        let directive = line.strip_prefix('#').map(str::trim_start);
        let harmful = directive.is_some_and(|directive| !is_harmless(directive));
        if line.contains("asm") || pasted || disguised || hidden || harmful {
            return Err(ForeignLine(line.chars().take(60).collect()));
        }
    }
    Ok(())
}

fn is_harmless(directive: &str) -> bool {
    let word: String = directive.chars().take_while(char::is_ascii_alphabetic).collect();
    let rest = directive.strip_prefix(&word).unwrap_or_default().trim_start();
    match word.as_str() {
        "if" | "elif" => !rest.contains("__has"),
        "define" | "undef" | "ifdef" | "ifndef" | "else" | "endif" | "error" => true,
        "pragma" => rest.starts_with("once") || rest.starts_with("GCC diagnostic"),
        "include" => is_plain_include(rest),
        _ => false,
    }
}

/// Returns whether an include names a header of TensorRT, CUDA or the standard library without a path.
fn is_plain_include(rest: &str) -> bool {
    let plain = |name: &str| {
        name.chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.'))
    };
    let within = |open: char, close: char| Some(rest.strip_prefix(open)?.split_once(close)?.0);
    match (within('"', '"'), within('<', '>')) {
        (Some(name), _) => name.starts_with("Nv") && plain(name),
        (None, Some(name)) => plain(name),
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_only_declare_are_accepted() {
        for text in [
            "#pragma once\n#include \"NvInferRuntime.h\" // IWYU pragma: export\n#include <cstdint>\n",
            "#ifndef NV_H\n#define NV_H \\\n  1\n#if defined(__CUDA__) && 1\n#elif 2\n#else\n#endif\n#endif\n",
            "static nvinfer1::PluginRegistrar<name> pluginRegistrar##name {}\n",
            "#pragma GCC diagnostic push\n/* #include is explained here */\n",
        ] {
            assert_eq!(check(text), Ok(()), "{text}");
        }
    }

    #[test]
    fn headers_cannot_bring_files_of_the_workstation_into_the_shim() {
        for text in [
            "__asm__(\".incbin \\\"/etc/passwd\\\"\");\n",
            "#define PASTE(a, b) a##b\n",
            "#include \"/etc/passwd\"\n",
            "#include <../../etc/passwd>\n",
            "#inc\\\nlude \"/etc/passwd\"\n",
            "#inc\\\r\nlude \"/etc/passwd\"\n",
            "  # include NAME\n",
            "#include_next <secret.h>\n",
            "#embed \"/etc/passwd\"\n",
            "%:include \"/etc/passwd\"\n",
            "/**/#include \"/etc/passwd\"\n",
            "/**/ /**/ #include \"/etc/passwd\"\n",
            "/*\n*/ #include \"/etc/passwd\"\n",
            "#if __has_include(\"/etc/passwd\")\n",
            "#pragma GCC dependency \"/etc/passwd\"\n",
            "#/**/include \"/etc/passwd\"\n",
        ] {
            assert!(check(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_plain_files_are_unpacked() {
        let packed = |path: &str, kind: tar::EntryType, text: &str| {
            let mut archive = tar::Builder::new(flate2::write::GzEncoder::new(
                Vec::new(),
                flate2::Compression::default(),
            ));
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            // `set_path` refuses paths that a hostile board could send.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            archive.append(&header, text.as_bytes()).unwrap();
            archive.into_inner().unwrap().finish().unwrap()
        };
        let directory = tempfile::tempdir().unwrap();
        let into = directory.path().join("headers");
        fs::create_dir(&into).unwrap();
        unpack(
            &packed("NvInfer.h", tar::EntryType::Regular, "#pragma once\n"),
            &into,
        )
        .unwrap();
        assert!(into.join("NvInfer.h").exists());
        for (path, kind) in [
            ("../Nv.h", tar::EntryType::Regular),
            ("/tmp/Nv.h", tar::EntryType::Regular),
            ("a/Nv.h", tar::EntryType::Regular),
            ("NvLink.h", tar::EntryType::Symlink),
        ] {
            assert!(unpack(&packed(path, kind, ""), &into).is_err(), "{path}");
        }
        assert!(!directory.path().join("Nv.h").exists());
    }

    proptest::proptest! {
        #[test]
        fn arbitrary_archives_are_unpacked_or_refused(bytes: Vec<u8>) {
            let directory = tempfile::tempdir().unwrap();
            let _ = unpack(&bytes, directory.path());
        }
    }
}
