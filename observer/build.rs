//! Finds the committed probe for `include_bytes!`, and refuses one that is older than its sources.

use std::env;
use std::fs;
use std::path::Path;

#[path = "../observer-ebpf/source_hash.rs"]
mod source_hash;

fn main() {
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    let probe = Path::new(env!("CARGO_MANIFEST_DIR")).join("../observer-ebpf");
    let object = probe.join("object/observer.bpf.o");
    let manifest = probe.join("object/manifest.toml");
    println!("cargo::rerun-if-changed=build.rs");
    for path in [
        &object,
        &manifest,
        &probe.join("src"),
        &probe.join("Cargo.toml"),
    ] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let built_from = fs::read_to_string(&manifest).ok().and_then(|manifest| {
        Some(
            manifest
                .split_once("source = \"")?
                .1
                .split_once('"')?
                .0
                .to_owned(),
        )
    });
    let sources = match source_hash::source_hash(&probe) {
        Ok(sources) => sources,
        Err(error) => {
            println!("cargo::error=cannot read the probe's sources: {error}");
            return;
        }
    };
    match built_from {
        None => println!(
            "cargo::error={} tells of no source hash",
            manifest.display()
        ),
        Some(hash) if hash != sources => println!(
            "cargo::error=the probe's sources have changed since its object was built: \
             run `cargo xtask ebpf`"
        ),
        Some(_) => println!(
            "cargo::rustc-env=OBSERVER_PROBE_OBJECT={}",
            object.display()
        ),
    }
}
