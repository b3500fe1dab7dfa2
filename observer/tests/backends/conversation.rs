//! The roles `host` and `server`: a conversation that has a bit of everything in it, written and
//! read by the system calls that they are told.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::net::UdpSocket;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::moving::{Random, channel, read_some, write_all};
use crate::roles::ROLE;

/// How two programs talk: the kind of stream, and the calls that write and read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) kind: &'static str,
    pub(crate) write: &'static str,
    pub(crate) read: &'static str,
}

/// Every call that carries content, in each of its places once.
pub(crate) const WAYS: [Way; 9] = [
    way("pipe", "write", "read"),
    way("pipe", "writev", "readv"),
    way("pipe", "pwritev2", "preadv2"),
    way("pipe", "vmsplice", "read"),
    way("socket", "write", "read"),
    way("socket", "writev", "readv"),
    way("socket", "sendto", "recvfrom"),
    way("socket", "sendmsg", "recvmsg"),
    way("socket", "sendmmsg", "recvmmsg"),
];

/// Calls by which the kernel moves the content by itself.
pub(crate) const BY_KERNEL: [Way; 3] = [
    way("pipe", "splice", "read"),
    way("pipe", "sendfile", "readv"),
    way("socket", "sendfile", "recvmsg"),
];

const fn way(kind: &'static str, write: &'static str, read: &'static str) -> Way {
    Way { kind, write, read }
}

/// One end of a conversation.
struct Line<'a> {
    words: &'a [&'a str],
    reader: i32,
    writer: i32,
    random: Random,
    read: Vec<u8>,
    lines: VecDeque<String>,
}

impl<'a> Line<'a> {
    /// `words` are the kind of stream and the two calls.
    fn new(words: &'a [&'a str], reader: i32, writer: i32) -> Self {
        Self {
            words,
            reader,
            writer,
            random: Random::new(u64::from(std::process::id())),
            read: Vec::new(),
            lines: VecDeque::new(),
        }
    }

    fn say(&mut self, message: &Value) {
        self.say_line(&message.to_string());
    }

    fn say_line(&mut self, line: &str) {
        // What vmsplice puts into a pipe is the memory itself, which must stay as it is.
        let bytes: &'static [u8] = format!("{line}\n").into_bytes().leak();
        let longest = 1 + self.random.below(bytes.len());
        write_all(
            self.words[1],
            self.writer,
            bytes,
            longest,
            self.random.next(),
        );
    }

    /// The next message; `None` at the end.
    fn hear(&mut self) -> Option<Value> {
        while self.lines.is_empty() {
            let mut buffer = vec![0; 1 + self.random.below(100_000)];
            let read = read_some(self.words[2], self.reader, &mut buffer, 3);
            if read == 0 {
                return None;
            }
            self.read.extend_from_slice(&buffer[..read]);
            while let Some(end) = self.read.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                self.lines.push_back(String::from_utf8(line).unwrap());
            }
        }
        let line = self.lines.pop_front()?;
        // Noise is for the observer to see.
        serde_json::from_str(&line).ok().or_else(|| self.hear())
    }
}

fn call(id: u32, tool: &str, size: usize) -> Value {
    let arguments = json!({"text": "x".repeat(size)});
    let params = json!({"name": tool, "arguments": arguments});
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
}

fn answer(id: &Value, size: usize) -> Value {
    let content = json!([{"type": "text", "text": "y".repeat(size)}]);
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": content}})
}

/// `host KIND WRITE READ [BEFORE...]`: starts a server that talks as it does, with the words
/// BEFORE before its command.
pub(crate) fn host(words: &[&str]) -> i32 {
    let (words, before) = words.split_at(3);
    let (to, from) = (channel(words[0]), channel(words[0]));
    for fd in [to.0, to.1, from.0, from.1] {
        // SAFETY: two numbers. The server must hold no end open but its stdin and its stdout.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    // SAFETY: the descriptors are new, and nobody else owns them.
    let [stdin, stdout] = [to.0, from.1].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    // By its name: what stands before it is another program.
    let own = std::env::current_exe().unwrap().into_os_string();
    let mut command = before.iter().map(OsString::from).chain([own]);
    let mut server = Command::new(command.next().unwrap())
        .args(command)
        .env(ROLE, format!("server {}", words.join(" ")))
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .spawn()
        .unwrap();
    let mut line = Line::new(words, from.0, to.1);
    talk(&mut line);
    // SAFETY: nobody else uses the descriptor, nor this process again.
    unsafe { libc::close(to.1) };
    assert_eq!(line.hear(), None);
    server.kill().unwrap();
    server.wait().unwrap();
    0
}

fn talk(line: &mut Line<'_>) {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    line.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}));
    line.hear().unwrap();
    line.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (id, size) in [(2, 1), (3, 20_000), (4, 700_000)] {
        line.say(&call(id, "echo", size));
        line.hear().unwrap();
    }
    // A word to somebody else.
    let network = UdpSocket::bind("127.0.0.1:0").unwrap();
    network
        .send_to(b"to the model", network.local_addr().unwrap())
        .unwrap();
    // Given up as it should be.
    line.say(&call(5, "hold", 1));
    let params = json!({"requestId": 5, "reason": "enough"});
    line.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    // Answered the other way round.
    line.say(&call(6, "hold", 1));
    line.say(&call(7, "other-way-round", 1));
    line.hear().unwrap();
    line.hear().unwrap();
    line.say(&call(8, "fail", 1));
    line.hear().unwrap();
    // The server asks as well.
    line.say(&call(9, "ask", 1));
    let asked = line.hear().unwrap();
    line.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}));
    line.hear().unwrap();
    // What a server should not do.
    line.say(&call(10, "noise", 1));
    line.hear().unwrap();
    line.say(&call(11, "unknown-id", 1));
    line.hear().unwrap();
    line.hear().unwrap();
    // The session ends while it works.
    line.say(&call(12, "hold", 1));
    line.say(&call(13, "echo", 1));
    line.hear().unwrap();
}

/// `server KIND WRITE READ`.
pub(crate) fn server(words: &[&str]) -> i32 {
    let mut line = Line::new(words, 0, 1);
    while let Some(message) = line.hear() {
        let id = &message["id"];
        match message["method"].as_str() {
            Some("initialize") => {
                let server = json!({"name": "server", "version": "1"});
                let result = json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                    "serverInfo": server});
                line.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
            }
            Some("tools/call") => work(&mut line, id, &message["params"]),
            _ => {}
        }
    }
    // Says that it has come to the end, and stays until it is killed.
    // SAFETY: nobody else uses the descriptor, nor this process again.
    unsafe { libc::close(1) };
    loop {
        // SAFETY: it has no arguments.
        unsafe { libc::pause() };
    }
}

fn work(line: &mut Line<'_>, id: &Value, params: &Value) {
    let size = params["arguments"]["text"].as_str().unwrap().len();
    match params["name"].as_str().unwrap() {
        "hold" => {}
        "other-way-round" => {
            line.say(&answer(id, size));
            line.say(&answer(&json!(6), size));
        }
        "fail" => {
            let error = json!({"code": -32603, "message": "no luck"});
            line.say(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        "ask" => {
            line.say(&json!({"jsonrpc": "2.0", "id": "of the server", "method": "ping"}));
            line.hear().unwrap();
            line.say(&answer(id, size));
        }
        "noise" => {
            line.say_line("this is no message");
            line.say(&answer(id, size));
        }
        "unknown-id" => {
            line.say(&answer(&json!(999), size));
            line.say(&answer(id, size));
        }
        _ => line.say(&answer(id, size)),
    }
}
