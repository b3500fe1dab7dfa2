//! Every byte arrives, in order and unchanged, whatever carries it.

use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::process::{Child, Stdio};
use std::thread;

use super::{Bench, End, Running, Way, alike, of_type, socket_pair};

/// A source of bytes without any pattern; the same for the same seed.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next().to_le_bytes()[..chunk.len()]);
        }
    }
}

/// Writes this many bytes in pieces of 1 B to 256 KiB; their hash. Lines are long: the log has a
/// record for each, and that is not what is tested here.
fn pour(mut into: impl Write, size: usize) -> u64 {
    let (mut noise, mut hash, mut left) = (Noise(0x9e37_79b9), DefaultHasher::new(), size);
    let mut block = vec![0; 256 << 10];
    while left > 0 {
        let bits = noise.next() % 19;
        let piece = 1 + noise.next() % (1 << bits);
        let piece = usize::try_from(piece).unwrap().min(left);
        noise.fill(&mut block[..piece]);
        block[..piece]
            .iter_mut()
            .filter(|byte| **byte == b'\n')
            .for_each(|byte| *byte = b'\r');
        if bits == 18 {
            block[0] = b'\n';
        }
        hash.write(&block[..piece]);
        into.write_all(&block[..piece]).unwrap();
        left -= piece;
    }
    hash.finish()
}

/// Reads to the end; size and hash, independent of how the reads cut it.
fn drain(mut from: impl Read) -> (usize, u64) {
    let (mut size, mut hash) = (0, DefaultHasher::new());
    let mut block = vec![0; 100_000];
    loop {
        match from.read(&mut block).unwrap() {
            0 => return (size, hash.finish()),
            read => {
                hash.write(&block[..read]);
                size += read;
            }
        }
    }
}

#[test]
fn random_bytes_come_back_through_pipes() {
    let size = 64 << 20;
    let bench = Bench::relayed();
    let mut running = bench.start(&["cat"]);
    let stdin = running.child.stdin.take().unwrap();
    let poured = thread::spawn(move || pour(stdin, size));
    let drained = drain(&mut running.stdout);
    assert_eq!(drained, (size, poured.join().unwrap()));
    assert_eq!(running.wait(), End::Code(0));
    let records = bench.records();
    let loss = of_type(&records, "loss").pop().unwrap();
    assert_eq!(loss["seen"], 2 * size);
    assert_eq!(loss["submitted"], loss["seen"]);
}

/// A server that says what it hears, at these two descriptors.
fn cat(bench: &Bench, stdin: OwnedFd, stdout: OwnedFd) -> Child {
    let mut command = bench.command(&["cat"]);
    let child = command
        .stdin(Stdio::from(stdin))
        .stdout(Stdio::from(stdout))
        .spawn();
    child.unwrap()
}

#[test]
fn random_bytes_come_back_through_socket_pairs() {
    let size = 16 << 20;
    let bench = Bench::relayed();
    let (to_server, stdin) = socket_pair();
    let (from_server, stdout) = socket_pair();
    let mut child = cat(&bench, stdin, stdout);
    let poured = thread::spawn(move || {
        let hash = pour(&to_server, size);
        // As Node ends a server's stdin: the descriptor stays, its writing end does not.
        to_server.shutdown(Shutdown::Write).unwrap();
        (hash, to_server)
    });
    let drained = drain(from_server);
    assert_eq!(drained, (size, poured.join().unwrap().0));
    assert_eq!(End::of(child.wait().unwrap()), End::Code(0));
}

#[test]
fn the_server_gets_the_kind_of_stream_that_the_host_made() {
    let script = r#"case $(readlink /proc/self/fd/0 /proc/self/fd/1) in *socket:*) echo socket;; *) echo pipe;; esac"#;
    if !std::path::Path::new("/proc/self/fd").exists() {
        println!("skipped: there is no /proc here");
        return;
    }
    alike(&"pipe\n".to_owned(), |bench| {
        bench.start(&["sh", "-c", script]).rest()
    });
    alike(&"socket\n".to_owned(), |bench| {
        let (mut from_server, stdout) = socket_pair();
        let mut command = bench.command(&["sh", "-c", script]);
        let mut child = command
            .stdin(socket_pair().1)
            .stdout(Stdio::from(stdout))
            .spawn()
            .unwrap();
        drop(command);
        let mut said = String::new();
        from_server.read_to_string(&mut said).unwrap();
        child.wait().unwrap();
        said
    });
}

#[test]
fn a_host_that_does_not_read_holds_up_the_server() {
    // Pipes and buffers hold less than a megabyte; the server can never have written all.
    let script = "import os,sys\nn=0\nos.set_blocking(1,True)\nsys.stderr.write('begun\\n')\nwhile n<8<<20: n+=os.write(1,b'x'*65536); sys.stderr.write('%d\\n'%n)";
    let bench = Bench::relayed();
    let mut command = bench.command(&super::python(script));
    let mut running = Running::start(command.stderr(Stdio::piped()));
    let mut stderr = running.child.stderr.take().unwrap();
    let reports = thread::spawn(move || {
        let mut all = String::new();
        stderr.read_to_string(&mut all).unwrap();
        all
    });
    // Until the writing comes to a halt; what is written by then is in buffers.
    let written = super::wait_for(|| {
        let before = unread(&running);
        thread::sleep(std::time::Duration::from_millis(300));
        (before > 0 && unread(&running) == before).then_some(before)
    });
    assert!(
        written <= 1 << 20,
        "{written} bytes wait in the host's pipe"
    );
    assert_eq!(drain(&mut running.stdout).0, 8 << 20);
    assert_eq!(running.wait(), End::Code(0));
    assert!(reports.join().unwrap().ends_with(&format!("{}\n", 8 << 20)));
}

fn unread(running: &Running) -> i32 {
    use std::os::fd::AsRawFd;
    let mut bytes = 0;
    // SAFETY: the request writes one int.
    unsafe {
        libc::ioctl(
            running.stdout.get_ref().as_raw_fd(),
            libc::FIONREAD,
            &raw mut bytes,
        )
    };
    bytes
}

#[test]
fn a_descriptor_that_does_not_block_stays_so_and_loses_nothing() {
    use nix::fcntl::{FcntlArg, OFlag, fcntl};
    let bench = Bench::new(Way::Relayed);
    let (to_server, stdin) = socket_pair();
    let (from_server, stdout) = socket_pair();
    for end in [&stdin, &stdout] {
        fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).unwrap();
    }
    let (kept_in, kept_out) = (stdin.try_clone().unwrap(), stdout.try_clone().unwrap());
    let mut child = cat(&bench, stdin, stdout);
    let size = 4 << 20;
    let poured = thread::spawn(move || {
        let hash = pour(&to_server, size);
        to_server.shutdown(Shutdown::Write).unwrap();
        hash
    });
    let mut block = vec![0; size];
    (&from_server).read_exact(&mut block).unwrap();
    let mut hash = DefaultHasher::new();
    hash.write(&block);
    assert_eq!(hash.finish(), poured.join().unwrap());
    assert_eq!(End::of(child.wait().unwrap()), End::Code(0));
    for end in [kept_in, kept_out] {
        let flags = OFlag::from_bits_retain(fcntl(&end, FcntlArg::F_GETFL).unwrap());
        assert!(flags.contains(OFlag::O_NONBLOCK));
    }
}
