//! What is kept of the object that the linker wrote.

use anyhow::{Context, Result, ensure};

/// Where fields are in `Elf64_Ehdr` and `Elf64_Shdr`, by offset (`include/uapi/linux/elf.h`).
mod elf {
    pub(super) const E_SHOFF: usize = 40;
    pub(super) const E_SHNUM: usize = 60;
    pub(super) const E_SHSTRNDX: usize = 62;
    pub(super) const EHDR_SIZE: usize = 64;
    pub(super) const SH_TYPE: usize = 4;
    pub(super) const SH_OFFSET: usize = 24;
    pub(super) const SH_SIZE: usize = 32;
    pub(super) const SH_ALIGN: usize = 48;
    pub(super) const SHDR_SIZE: usize = 64;
}

/// Drops the DWARF sections: only the linker needed them, to make BTF of. They are most of the
/// object, and full of this machine's paths. Their headers stay, empty, so that no index changes.
pub(super) fn strip(object: &[u8]) -> Result<Vec<u8>> {
    ensure!(
        object.starts_with(b"\x7fELF\x02\x01"),
        "the linker wrote no 64-bit ELF object"
    );
    let count = usize::from(u16::from_le_bytes(array(object, elf::E_SHNUM)?));
    let table = size(object, elf::E_SHOFF)?;
    let mut headers = object
        .get(table..table + count * elf::SHDR_SIZE)
        .context("no section table")?
        .to_vec();
    let names = section_names(object, &headers)?;
    let mut stripped = object
        .get(..elf::EHDR_SIZE)
        .context("no ELF header")?
        .to_vec();
    for header in headers.chunks_exact_mut(elf::SHDR_SIZE) {
        let name_at = u32::from_le_bytes(array(header, 0)?) as usize;
        let name = names.get(name_at..).unwrap_or_default();
        if name.starts_with(b".debug") || name.starts_with(b".rel.debug") {
            header[elf::SH_TYPE..].fill(0);
            continue;
        }
        let (offset, len) = (size(header, elf::SH_OFFSET)?, size(header, elf::SH_SIZE)?);
        let content = object
            .get(offset..offset + len)
            .context("a section is cut off")?;
        stripped.resize(
            stripped
                .len()
                .next_multiple_of(size(header, elf::SH_ALIGN)?.max(1)),
            0,
        );
        header[elf::SH_OFFSET..][..8].copy_from_slice(&(stripped.len() as u64).to_le_bytes());
        stripped.extend_from_slice(content);
    }
    stripped.resize(stripped.len().next_multiple_of(8), 0);
    let table = stripped.len() as u64;
    stripped[elf::E_SHOFF..][..8].copy_from_slice(&table.to_le_bytes());
    stripped.extend_from_slice(&headers);
    Ok(stripped)
}

/// The section that holds the sections' names.
fn section_names<'a>(object: &'a [u8], headers: &[u8]) -> Result<&'a [u8]> {
    let index = usize::from(u16::from_le_bytes(array(object, elf::E_SHSTRNDX)?));
    let header = headers
        .get(index * elf::SHDR_SIZE..)
        .context("no section for names")?;
    let (offset, len) = (size(header, elf::SH_OFFSET)?, size(header, elf::SH_SIZE)?);
    object
        .get(offset..offset + len)
        .context("the names are cut off")
}

fn size(bytes: &[u8], at: usize) -> Result<usize> {
    Ok(usize::try_from(u64::from_le_bytes(array(bytes, at)?))?)
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    bytes
        .get(at..)
        .and_then(<[u8]>::first_chunk)
        .copied()
        .context("the object is cut off")
}

/// Absolute paths in the object that are not among those that replace real ones.
pub(super) fn paths(object: &[u8]) -> Vec<String> {
    let strings = object.split(|byte| !byte.is_ascii_graphic());
    strings
        .filter(|text| text.starts_with(b"/") && text.ends_with(b".rs"))
        .filter(|text| !text.starts_with(b"/rust/") && !text.starts_with(b"/registry/"))
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .collect()
}
