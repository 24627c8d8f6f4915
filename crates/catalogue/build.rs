//! Packs the files of `configs/` and `systems/` that the binaries carry (`src/known.rs`), without the comments of TOML files: together they squeeze
//! to a fifteenth, and the size of the agent counts. Parses none of them.

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
};

use flate2::{Compression, write::DeflateEncoder};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names OUT_DIR")?);
    for (packed, directory, ending) in [
        ("benchmarks", "../../configs/benchmarks", "toml"),
        ("rounds", "../../configs/rounds", "toml"),
        ("systems", "../../configs/systems", "toml"),
        ("descriptions", "../../systems", "json"),
        ("boards", "../../configs/simulated-boards", "toml"),
    ] {
        println!("cargo::rerun-if-changed={directory}");
        let mut files: Vec<PathBuf> = fs::read_dir(directory)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.retain(|path| path.extension().is_some_and(|found| found == ending));
        files.sort();
        let mut packed = DeflateEncoder::new(File::create(out.join(packed))?, Compression::best());
        for path in &files {
            let name = path
                .file_stem()
                .and_then(|name| name.to_str())
                .ok_or("a name in UTF-8")?;
            // Neither a name nor TOML nor JSON can hold a NUL.
            let text = fs::read_to_string(path)?;
            let text = if ending == "toml" {
                without_comments(&text)
            } else {
                text
            };
            write!(packed, "{name}\0{text}\0")?;
        }
        packed.finish()?;
    }
    Ok(())
}

/// Returns a TOML text without empty lines and lines that only have a comment. Texts between `'''` keep theirs.
fn without_comments(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_in_text = false;
    for line in text.lines() {
        let content = line.trim_start();
        if !is_in_text && (content.is_empty() || content.starts_with('#')) {
            continue;
        }
        if line.matches("'''").count() % 2 == 1 {
            is_in_text = !is_in_text;
        }
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}
