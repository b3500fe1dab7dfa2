//! The hash that ties the committed object to its sources. Included by `observer/build.rs` and by
//! `xtask`, so it uses nothing but the standard library.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The hash of everything the object is built from, in this crate's directory.
///
/// 128-bit FNV-1a over names and contents: it finds what somebody forgot, not what somebody
/// forged. Carriage returns do not count, since a checkout may add them.
pub(crate) fn source_hash(crate_dir: &Path) -> io::Result<String> {
    let mut files = sources(crate_dir)?;
    files.sort();
    let mut hash = Fnv::new();
    for file in files {
        let name = file.strip_prefix(crate_dir).unwrap_or(&file);
        for part in name.components() {
            hash.update(part.as_os_str().as_encoded_bytes());
            hash.update(b"/");
        }
        hash.update(&fs::read(&file)?);
        hash.update(b"\0");
    }
    Ok(format!("{:032x}", hash.0))
}

/// The files that the object is built from.
fn sources(crate_dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = vec![crate_dir.join("Cargo.toml")];
    let mut directories = vec![crate_dir.join("src")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    Ok(files)
}

struct Fnv(u128);

impl Fnv {
    fn new() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }

    fn update(&mut self, bytes: &[u8]) {
        for &byte in bytes.iter().filter(|&&byte| byte != b'\r') {
            self.0 ^= u128::from(byte);
            self.0 = self
                .0
                .wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }
}
