//! Packs the files of `configs/` and `systems/` that the binaries carry (`src/known.rs`): together they squeeze to a twelfth, and the size of the
//! agent counts. Reads none of them.

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
        ("servers", "../../configs/servers", "toml"),
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
            write!(packed, "{name}\0{}\0", fs::read_to_string(path)?)?;
        }
        packed.finish()?;
    }
    Ok(())
}
