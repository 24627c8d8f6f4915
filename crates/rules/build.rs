//! Packs the files of `configs/` that the binaries carry (`src/known.rs`): together they squeeze to a twelfth, and the size of the
//! agent counts. Reads none of them.

use std::{
    env,
    error::Error,
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::DeflateEncoder};

fn main() -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("cargo names OUT_DIR")?);
    for directory in ["rounds", "systems"] {
        let configs = Path::new("../../configs").join(directory);
        println!("cargo::rerun-if-changed={}", configs.display());
        let mut files: Vec<PathBuf> = fs::read_dir(&configs)?
            .map(|entry| entry.map(|entry| entry.path()))
            .collect::<Result<_, _>>()?;
        files.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
        files.sort();
        let mut packed = DeflateEncoder::new(File::create(out.join(directory))?, Compression::best());
        for path in &files {
            let name = path
                .file_stem()
                .and_then(|name| name.to_str())
                .ok_or("a name in UTF-8")?;
            // Neither a name nor TOML can hold a NUL.
            write!(packed, "{name}\0{}\0", fs::read_to_string(path)?)?;
        }
        packed.finish()?;
    }
    Ok(())
}
