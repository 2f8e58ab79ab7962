//! Writes the headers: `cargo run -p consort-shmem --example header`.

mod constants;
mod generator;

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    fs::create_dir_all(include.join("mpp"))?;
    for (name, text) in generator::headers() {
        fs::write(include.join(name), text)?;
    }
    Ok(())
}
