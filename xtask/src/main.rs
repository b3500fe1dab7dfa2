//! `cargo xtask`: what the repository does to itself. One file a verb.

mod schema;

use clap::Parser;

#[derive(Parser)]
#[command(name = "cargo xtask", about = "What the repository does to itself")]
enum Verb {
    Schema(schema::Args),
}

fn main() -> anyhow::Result<()> {
    match Verb::parse() {
        Verb::Schema(args) => schema::run(&args),
    }
}
