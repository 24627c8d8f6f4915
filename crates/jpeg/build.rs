//! Compiles `decoder/decode.c` against the headers of the libjpeg-turbo that `turbojpeg-sys` builds.

use std::env;

#[expect(clippy::expect_used, reason = "a build script's way to fail")]
fn main() {
    println!("cargo:rerun-if-changed=decoder/decode.c");
    let include = env::var("DEP_TURBOJPEG_INCLUDE").expect("turbojpeg-sys tells where its headers are");
    let mut build = cc::Build::new();
    for directory in include.split(',') {
        build.include(directory);
    }
    build
        .file("decoder/decode.c")
        .std("c11")
        .warnings_into_errors(true)
        .compile("regatta_jpeg_decoder");
}
