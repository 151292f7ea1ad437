//! Compresses the program of the page of the API, and hashes it for the page's policy. Both are known when the page is
//! built, so no start of the function does it.

use std::error::Error;
use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest as _, Sha256};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    #[expect(clippy::disallowed_methods, reason = "a build script gets its folder from cargo")]
    let folder = std::env::var("OUT_DIR")?;
    let program = scalar_api_reference::get_asset("scalar.js").ok_or("Scalar has no program")?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    // A script has the text of the page's encoding: the browser hashes this text.
    packed.write_all(std::str::from_utf8(&program)?.as_bytes())?;
    std::fs::write(Path::new(&folder).join("program.gz.base64"), STANDARD.encode(packed.finish()?))?;
    std::fs::write(Path::new(&folder).join("program.sha256.base64"), STANDARD.encode(Sha256::digest(&program)))?;
    Ok(())
}
