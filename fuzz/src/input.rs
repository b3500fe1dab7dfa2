//! Bytes read as a script.

/// Takes small numbers and runs of bytes from an input; an input that is used up gives zeros.
#[derive(Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// From its beginning.
    pub const fn new(data: &'a [u8]) -> Self {
        Self { rest: data }
    }

    /// Whether it is used up.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.rest.split_off_first().copied().unwrap_or_default()
    }

    /// A number: mostly a small one, now and then one at the end of the range.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX - u64::from(self.byte()),
            254 => u64::from(self.byte()) << 32,
            byte => u64::from(byte),
        }
    }

    /// Up to so many bytes.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        self.rest
            .split_off(..count.min(self.rest.len()))
            .unwrap_or_default()
    }

    /// The bytes up to and with the next newline.
    pub fn line(&mut self) -> &'a [u8] {
        let end = self.rest.iter().position(|&byte| byte == b'\n');
        self.bytes(end.map_or(self.rest.len(), |end| end + 1))
    }
}
