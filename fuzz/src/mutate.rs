//! A plain mutator, for where no coverage tells the way: known words, cut and mixed.

const WORDS: [&str; 24] = [
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"\"}}\r\n",
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"1\"}}\n",
    "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"},1]\n",
    "Content-Length: 10\r\n\r\n",
    "Server ready\n",
    "\u{feff}",
    "\u{1b}[31m",
    "\"id\":",
    "\\ud800",
    "\\u0000",
    "[[[[[[[[[[[[[[[[",
    "]]]]]]]]]]]]]]]]",
    "{\"a\":",
    "}",
    "\"",
    "\\",
    "\n",
    ",",
    "1e999",
    "-0",
    "null",
];

/// A deterministic source of inputs.
#[derive(Debug)]
pub struct Mutator {
    state: u64,
    last: Vec<u8>,
}

impl Mutator {
    /// The same seed gives the same inputs.
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
            last: Vec::new(),
        }
    }

    /// The next input, at most a few kilobytes.
    pub fn next_input(&mut self) -> Vec<u8> {
        let mut data = if self.below(4) == 0 {
            Vec::new()
        } else {
            std::mem::take(&mut self.last)
        };
        if data.len() > 4096 {
            data.truncate(64);
        }
        for _ in 0..=self.below(8) {
            self.mutate(&mut data);
        }
        self.last.clone_from(&data);
        data
    }

    fn mutate(&mut self, data: &mut Vec<u8>) {
        let at = self.below(data.len() + 1);
        let end = (at + self.below(16)).min(data.len());
        match self.below(6) {
            0 | 1 => {
                let word = WORDS[self.below(WORDS.len())];
                data.splice(at..at, word.bytes());
            }
            2 => {
                let byte = self.random().to_le_bytes()[0];
                data.insert(at, byte);
            }
            3 => {
                data.drain(at..end);
            }
            4 => {
                let copy = data[at..end].to_vec();
                data.splice(at..at, copy);
            }
            _ => {
                let bit = 1 << self.below(8);
                if let Some(byte) = data.get_mut(at) {
                    *byte ^= bit;
                }
            }
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random() % bound.max(1) as u64).unwrap_or_default()
    }

    /// xorshift64.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}
