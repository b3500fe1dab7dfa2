//! A small reader of the kernel's type information (BTF): where a member is in its struct.
//!
//! Reads what `Documentation/bpf/btf.rst` (Linux 6.12) describes and no more: the header, the
//! type section, the string section. Owns no file and knows none of the kernel's structs.

use std::collections::HashMap;

/// Why BTF could not be used. Never a panic: the bytes come from outside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BtfError {
    /// It does not begin with the magic number, in this machine's byte order.
    #[error("not BTF of this machine's byte order")]
    Magic,
    /// A section or type reaches past the end.
    #[error("BTF is cut off at byte {0}")]
    Truncated(usize),
    /// A type is of a kind that this reader does not know, so it cannot find the next one.
    #[error("BTF type {id} is of the unknown kind {kind}")]
    UnknownKind {
        /// The type's number.
        id: usize,
        /// Its kind.
        kind: u32,
    },
    /// No struct of that name.
    #[error("the kernel has no struct {0}")]
    NoStruct(String),
    /// The struct has no such member.
    #[error("the kernel's struct {0} has no member {1}")]
    NoMember(String, String),
    /// The member is a bit field, which has no byte offset.
    #[error("{1} of the kernel's struct {0} is a bit field")]
    BitField(String, String),
}

const MAGIC: u16 = 0xeb9f;

/// The kinds of types, from `include/uapi/linux/btf.h`.
mod kind {
    pub(super) const INT: u32 = 1;
    pub(super) const PTR: u32 = 2;
    pub(super) const ARRAY: u32 = 3;
    pub(super) const STRUCT: u32 = 4;
    pub(super) const UNION: u32 = 5;
    pub(super) const ENUM: u32 = 6;
    pub(super) const FWD: u32 = 7;
    pub(super) const TYPEDEF: u32 = 8;
    pub(super) const VOLATILE: u32 = 9;
    pub(super) const CONST: u32 = 10;
    pub(super) const RESTRICT: u32 = 11;
    pub(super) const FUNC: u32 = 12;
    pub(super) const FUNC_PROTO: u32 = 13;
    pub(super) const VAR: u32 = 14;
    pub(super) const DATASEC: u32 = 15;
    pub(super) const FLOAT: u32 = 16;
    pub(super) const DECL_TAG: u32 = 17;
    pub(super) const TYPE_TAG: u32 = 18;
    pub(super) const ENUM64: u32 = 19;
}

/// The size of the fixed part of a type, and of a struct's member.
const TYPE_SIZE: usize = 12;
const MEMBER_SIZE: usize = 12;

/// How deep anonymous structs may nest; real ones stop at five.
const MAX_DEPTH: usize = 16;

/// The types of a kernel.
#[derive(Debug)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Where each type begins in `types`; type 0 is `void` and has no place.
    starts: Vec<usize>,
    /// The structs and unions of each name; the same name may stand for several.
    structs: HashMap<&'a [u8], Vec<usize>>,
}

/// One type: its fixed part, decoded.
#[derive(Clone, Copy)]
struct Type {
    start: usize,
    name: u32,
    kind: u32,
    /// How many members, parameters, ... follow.
    len: usize,
    kind_flag: bool,
    /// For a type that refers to one other: that type's number.
    target: usize,
}

impl<'a> Btf<'a> {
    /// Reads the sections and finds every type.
    ///
    /// # Errors
    ///
    /// Where the bytes are no BTF, are cut off, or hold a kind of type that is newer than this.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BtfError> {
        if u16_at(bytes, 0)? != MAGIC {
            return Err(BtfError::Magic);
        }
        let header_len = u32_at(bytes, 4)? as usize;
        let section = |offset: usize, len: usize| {
            let start = header_len.saturating_add(offset);
            let end = start.saturating_add(len);
            bytes.get(start..end).ok_or(BtfError::Truncated(end))
        };
        let types = section(u32_at(bytes, 8)? as usize, u32_at(bytes, 12)? as usize)?;
        let strings = section(u32_at(bytes, 16)? as usize, u32_at(bytes, 20)? as usize)?;
        let mut btf = Self {
            types,
            strings,
            starts: vec![0],
            structs: HashMap::new(),
        };
        btf.index()?;
        Ok(btf)
    }

    fn index(&mut self) -> Result<(), BtfError> {
        let mut start = 0;
        while start < self.types.len() {
            let id = self.starts.len();
            let ty = self.decode(start)?;
            self.starts.push(start);
            if matches!(ty.kind, kind::STRUCT | kind::UNION) && ty.name != 0 {
                self.structs
                    .entry(self.string(ty.name))
                    .or_default()
                    .push(id);
            }
            start +=
                TYPE_SIZE + trailing(&ty).ok_or(BtfError::UnknownKind { id, kind: ty.kind })?;
        }
        Ok(())
    }

    /// The byte offset of a member, by its name or by a path through named members
    /// (`thread_info.flags`). Members of anonymous structs and unions count as the outer one's.
    ///
    /// # Errors
    ///
    /// Where the struct or the member does not exist, or the member is a bit field.
    pub fn offset(&self, name: &str, path: &str) -> Result<u32, BtfError> {
        let candidates = self
            .structs
            .get(name.as_bytes())
            .ok_or_else(|| BtfError::NoStruct(name.into()))?;
        let missing = || BtfError::NoMember(name.into(), path.into());
        // Where a name stands for several structs, the one that has the member is meant.
        let bits = candidates
            .iter()
            .find_map(|&id| self.path_bits(id, path))
            .ok_or_else(missing)?;
        if !bits.is_multiple_of(8) {
            return Err(BtfError::BitField(name.into(), path.into()));
        }
        Ok(bits / 8)
    }

    fn path_bits(&self, id: usize, path: &str) -> Option<u32> {
        path.split('.')
            .try_fold((id, 0u32), |(id, bits), member| {
                let (inner, offset) = self.member(id, member.as_bytes(), 0)?;
                Some((inner, bits.checked_add(offset)?))
            })
            .map(|(_, bits)| bits)
    }

    /// A member's type and offset in bits.
    fn member(&self, id: usize, name: &[u8], depth: usize) -> Option<(usize, u32)> {
        let ty = self.resolve(id)?;
        if depth > MAX_DEPTH || !matches!(ty.kind, kind::STRUCT | kind::UNION) {
            return None;
        }
        (0..ty.len).find_map(|i| {
            let at = ty.start + TYPE_SIZE + i * MEMBER_SIZE;
            let member_name = u32_at(self.types, at).ok()?;
            let member_type = u32_at(self.types, at + 4).ok()? as usize;
            let raw = u32_at(self.types, at + 8).ok()?;
            let offset = if ty.kind_flag { raw & 0x00ff_ffff } else { raw };
            if member_name == 0 {
                let (inner, inner_offset) = self.member(member_type, name, depth + 1)?;
                return Some((inner, offset.checked_add(inner_offset)?));
            }
            (self.string(member_name) == name).then_some((member_type, offset))
        })
    }

    /// The type behind typedefs and qualifiers.
    fn resolve(&self, mut id: usize) -> Option<Type> {
        for _ in 0..MAX_DEPTH {
            let start = *self.starts.get(id).filter(|_| id != 0)?;
            let ty = self.decode(start).ok()?;
            match ty.kind {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    id = ty.target;
                }
                _ => return Some(ty),
            }
        }
        None
    }

    fn decode(&self, start: usize) -> Result<Type, BtfError> {
        let info = u32_at(self.types, start + 4)?;
        Ok(Type {
            start,
            name: u32_at(self.types, start)?,
            kind: (info >> 24) & 0x1f,
            len: (info & 0xffff) as usize,
            kind_flag: info >> 31 == 1,
            target: u32_at(self.types, start + 8)? as usize,
        })
    }

    /// A string of the string section, without its NUL; empty where there is none.
    fn string(&self, offset: u32) -> &'a [u8] {
        let tail = self.strings.get(offset as usize..).unwrap_or_default();
        let len = memchr::memchr(0, tail).unwrap_or(tail.len());
        &tail[..len]
    }
}

/// How many bytes follow the fixed part of a type; `None` for an unknown kind.
fn trailing(ty: &Type) -> Option<usize> {
    Some(match ty.kind {
        kind::PTR
        | kind::FWD
        | kind::TYPEDEF
        | kind::VOLATILE
        | kind::CONST
        | kind::RESTRICT
        | kind::FUNC
        | kind::FLOAT
        | kind::TYPE_TAG => 0,
        kind::INT | kind::VAR | kind::DECL_TAG => 4,
        kind::ENUM | kind::FUNC_PROTO => ty.len * 8,
        kind::ARRAY => 12,
        kind::STRUCT | kind::UNION | kind::DATASEC | kind::ENUM64 => ty.len * 12,
        _ => return None,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, BtfError> {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found
        .map(|&two| u16::from_ne_bytes(two))
        .ok_or(BtfError::Truncated(at))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, BtfError> {
    let found = bytes.get(at..).and_then(<[u8]>::first_chunk);
    found
        .map(|&four| u32::from_ne_bytes(four))
        .ok_or(BtfError::Truncated(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size<T>(items: &[T]) -> u32 {
        u32::try_from(items.len()).unwrap()
    }

    /// Builds BTF by hand: types as they are pushed, strings by their offset.
    #[derive(Default)]
    struct Blob {
        types: Vec<u8>,
        strings: Vec<u8>,
    }

    impl Blob {
        fn new() -> Self {
            Self {
                types: Vec::new(),
                strings: vec![0],
            }
        }

        fn string(&mut self, text: &str) -> u32 {
            if text.is_empty() {
                return 0;
            }
            let offset = size(&self.strings);
            self.strings.extend_from_slice(text.as_bytes());
            self.strings.push(0);
            offset
        }

        fn words(&mut self, words: &[u32]) {
            self.types
                .extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        }

        fn int(&mut self) {
            let name = self.string("int");
            self.words(&[name, kind::INT << 24, 4, 32]);
        }

        fn group(&mut self, kind: u32, name: &str, members: &[(&str, u32, u32)]) {
            let name = self.string(name);
            self.words(&[name, kind << 24 | size(members), 64]);
            for &(member, ty, bits) in members {
                let member = self.string(member);
                self.words(&[member, ty, bits]);
            }
        }

        fn finish(self) -> Vec<u8> {
            let mut bytes = Vec::new();
            bytes.extend(MAGIC.to_ne_bytes());
            bytes.extend([1, 0]);
            let (types, strings) = (size(&self.types), size(&self.strings));
            for word in [24, 0, types, types, strings] {
                bytes.extend(word.to_ne_bytes());
            }
            bytes.extend(self.types);
            bytes.extend(self.strings);
            bytes
        }
    }

    /// `struct outer { int a; union { int b; struct { int c, d; }; }; struct inner e; }`
    fn nested() -> Vec<u8> {
        let mut blob = Blob::new();
        blob.int(); // 1
        blob.group(kind::STRUCT, "", &[("c", 1, 0), ("d", 1, 32)]); // 2
        blob.group(kind::UNION, "", &[("b", 1, 0), ("", 2, 0)]); // 3
        blob.group(kind::STRUCT, "inner", &[("f", 1, 96)]); // 4
        blob.group(
            kind::STRUCT,
            "outer",
            &[("a", 1, 0), ("", 3, 32), ("e", 6, 128)],
        ); // 5
        blob.words(&[0, kind::CONST << 24, 4]); // 6
        blob.finish()
    }

    #[test]
    fn members_are_found_through_anonymous_groups_and_paths() {
        let bytes = nested();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(btf.offset("outer", "a"), Ok(0));
        assert_eq!(btf.offset("outer", "b"), Ok(4));
        assert_eq!(btf.offset("outer", "d"), Ok(8));
        assert_eq!(btf.offset("outer", "e.f"), Ok(16 + 12));
    }

    #[test]
    fn what_is_missing_is_named() {
        let bytes = nested();
        let btf = Btf::parse(&bytes).unwrap();
        assert_eq!(
            btf.offset("nobody", "a"),
            Err(BtfError::NoStruct("nobody".into()))
        );
        assert_eq!(
            btf.offset("outer", "e.g"),
            Err(BtfError::NoMember("outer".into(), "e.g".into()))
        );
        assert_eq!(
            btf.offset("outer", "a.x"),
            Err(BtfError::NoMember("outer".into(), "a.x".into())),
            "an int has no members"
        );
    }

    #[test]
    fn of_two_structs_with_one_name_the_one_with_the_member_counts() {
        let mut blob = Blob::new();
        blob.int();
        blob.group(kind::STRUCT, "twin", &[("other", 1, 0)]);
        blob.group(kind::STRUCT, "twin", &[("wanted", 1, 64)]);
        let bytes = blob.finish();
        assert_eq!(Btf::parse(&bytes).unwrap().offset("twin", "wanted"), Ok(8));
    }

    #[test]
    fn a_bit_field_has_no_offset() {
        let mut blob = Blob::new();
        blob.int();
        blob.group(kind::STRUCT, "flags", &[("bit", 1, 3)]);
        let bytes = blob.finish();
        assert_eq!(
            Btf::parse(&bytes).unwrap().offset("flags", "bit"),
            Err(BtfError::BitField("flags".into(), "bit".into()))
        );
    }

    #[test]
    fn a_type_that_contains_itself_ends() {
        let mut blob = Blob::new();
        blob.group(kind::STRUCT, "loop", &[("", 1, 0)]);
        blob.words(&[0, kind::CONST << 24, 2]);
        blob.group(kind::STRUCT, "spin", &[("a", 2, 0)]);
        let bytes = blob.finish();
        let btf = Btf::parse(&bytes).unwrap();
        assert!(btf.offset("loop", "x").is_err());
        assert!(btf.offset("spin", "a.b").is_err());
    }

    #[test]
    fn no_cut_and_no_changed_byte_panics() {
        let bytes = nested();
        for len in 0..bytes.len() {
            if let Ok(btf) = Btf::parse(&bytes[..len]) {
                let _ = btf.offset("outer", "d");
            }
        }
        for i in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[i] ^= 0xff;
            if let Ok(btf) = Btf::parse(&changed) {
                let _ = btf.offset("outer", "e.f");
            }
        }
    }

    #[test]
    fn the_running_kernel_is_read() {
        let Ok(bytes) = std::fs::read("/sys/kernel/btf/vmlinux") else {
            println!("skipped: this kernel offers no BTF");
            return;
        };
        let btf = Btf::parse(&bytes).unwrap();
        assert!(btf.offset("task_struct", "files").unwrap() > 0);
        assert!(
            btf.offset("sock", "__sk_common.skc_daddr").is_ok(),
            "in an anonymous union"
        );
    }
}
