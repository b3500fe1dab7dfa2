//! The session in a scripted world.

mod ending;
mod pairing;
mod properties;
mod reading;
mod recognising;
mod world;
