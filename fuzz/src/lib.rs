//! Hostile input for the pure layers, and what must hold whatever it is.
//!
//! A target is a function of bytes ([`targets`]) that panics where an invariant breaks. Three
//! things drive them: the tests of this crate (short, on stable), the binary
//! (`cargo run --release -p observer-fuzz -- TARGET SECONDS`, on stable), and `cargo fuzz`.

pub mod input;
pub mod mutate;
pub mod records;
pub mod targets;

/// A target by its name.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 4] = [
    ("framer", targets::framer),
    ("jsonrpc", targets::jsonrpc),
    ("records", records::records),
    ("session", targets::session),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Enough to find what is shallow, in about a second a target.
    const ROUNDS: u64 = 5000;

    #[test]
    fn targets_hold_for_a_while() {
        for (name, target) in TARGETS {
            let mut mutator = mutate::Mutator::new(1);
            for round in 0..ROUNDS {
                let input = mutator.next_input();
                let outcome = std::panic::catch_unwind(|| target(&input));
                assert!(
                    outcome.is_ok(),
                    "{name}, round {round}: {:?}",
                    input.escape_ascii().to_string()
                );
            }
        }
    }
}
