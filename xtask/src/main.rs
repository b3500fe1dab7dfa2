//! `cargo xtask`: what the repository does to itself. One file a verb.

mod dist;
mod ebpf;
mod hosts;
mod pictures;
mod schema;
mod vm;

use std::path::Path;

use anyhow::Context as _;
use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "What the repository does to itself")]
enum Verb {
    Dist(dist::Args),
    Ebpf(ebpf::Args),
    Hosts(hosts::Args),
    Pictures(pictures::Args),
    Schema(schema::Args),
    Vm(vm::Args),
}

fn main() -> anyhow::Result<()> {
    match Verb::parse() {
        Verb::Dist(args) => dist::run(&args),
        Verb::Ebpf(args) => ebpf::run(&args),
        Verb::Hosts(args) => hosts::run(&args),
        Verb::Pictures(args) => pictures::run(&args),
        Verb::Schema(args) => schema::run(&args),
        Verb::Vm(args) => vm::run(&args),
    }
}

/// The repository.
fn root() -> anyhow::Result<&'static Path> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    root.context("xtask has no parent")
}
