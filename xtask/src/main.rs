//! `cargo xtask`: what the repository does to itself. One file a verb.

mod hosts;

use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "What the repository does to itself")]
enum Verb {
    Hosts(hosts::Args),
}

fn main() -> anyhow::Result<()> {
    match Verb::parse() {
        Verb::Hosts(args) => hosts::run(&args),
    }
}
