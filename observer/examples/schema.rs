//! Prints the JSON Schema of a line of the audit log. `cargo xtask schema` writes it into `docs/`.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    writeln!(io::stdout(), "{:#}", observer::record::schema())
}
