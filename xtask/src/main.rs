//! `cargo xtask`: what the repository does to itself. One file a verb.

mod ebpf;

use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "What the repository does to itself")]
enum Verb {
    Ebpf(ebpf::Args),
}

fn main() -> anyhow::Result<()> {
    match Verb::parse() {
        Verb::Ebpf(args) => ebpf::run(&args),
    }
}
