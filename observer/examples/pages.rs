//! Writes the shell completions and the manual pages into a folder. `cargo xtask dist` packs them.

use std::path::PathBuf;
use std::{env, fs, io};

use clap::CommandFactory as _;
use clap_complete::Shell;
use observer::cli::Cli;

fn main() -> io::Result<()> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| ".".into()));
    let completions = folder.join("completions");
    fs::create_dir_all(&completions)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut Cli::command(), "observer", &completions)?;
    }
    let pages = folder.join("man");
    fs::create_dir_all(&pages)?;
    clap_mangen::generate_to(Cli::command(), &pages)
}
