//! `cargo run --release -p observer-fuzz -- TARGET SECONDS [SEED]`: a target for a while, on stable.
//!
//! An input that breaks it is printed, escaped, with the panic.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use observer_fuzz::{TARGETS, mutate::Mutator};

#[expect(
    clippy::disallowed_methods,
    reason = "how long it runs is what the caller asks for"
)]
fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| {
        arguments
            .get(index)
            .and_then(|text| text.parse::<u64>().ok())
    };
    let name = arguments.first().map(String::as_str).unwrap_or_default();
    let target = TARGETS.iter().find(|(known, _)| *known == name);
    let (Some((name, target)), Some(seconds)) = (target, number(1)) else {
        let names = TARGETS.map(|(name, _)| name).join("|");
        eprintln!("usage: observer-fuzz {names} SECONDS [SEED]");
        return ExitCode::from(2);
    };
    let mut mutator = Mutator::new(number(2).unwrap_or(1));
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut rounds = 0u64;
    while Instant::now() < end {
        let input = mutator.next_input();
        if std::panic::catch_unwind(|| target(&input)).is_err() {
            eprintln!("{name}, round {rounds}: b\"{}\"", input.escape_ascii());
            return ExitCode::FAILURE;
        }
        rounds += 1;
    }
    println!("{name}: {rounds} inputs, nothing broke");
    ExitCode::SUCCESS
}
