use observer::capture::ebpf::*;
use observer::capture::*;

#[test]
fn smoke() {
    let mut probe = match Probe::load(&Options::new(Scope::Pids(vec![]))) {
        Ok(p) => p,
        Err(e) => { 
            let mut s: Option<&dyn std::error::Error> = Some(&e);
            while let Some(x) = s { println!("{x}"); s = x.source(); }
            if let ProbeError::Rejected { log, .. } = &e { let l: Vec<_> = log.lines().collect(); println!("{}", l[l.len().saturating_sub(60)..].join("\n")); }
            panic!("load") }
    };
    let handle = probe.handle();
    let (tx, mut rx) = tokio::sync::mpsc::channel(64);
    let mut child = std::process::Command::new("sh").args(["-c", "read x; python3 -c 'print(\"a\"*100)' | cat; python3 -c 'import socket,os; a,b=socket.socketpair(); a.send(b\"hello\"); print(b.recv(10)); a.sendmsg([b\"x\"*70000,b\"y\"*10000]); b.recv(100000); a.close(); b.recv(10)'; sh -c 'kill -9 $$'"])
        .stdin(std::process::Stdio::piped()).spawn().unwrap();
    probe.watch_pid(Pid(child.id())).unwrap();
    let t = std::thread::spawn(move || probe.run(tx));
    use std::io::Write;
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
    child.wait().unwrap();
    handle.stop();
    while let Some(b) = rx.blocking_recv() { for c in b { let s = format!("{c:?}"); println!("{}", &s[..s.len().min(300)]); } }
    println!("{:?}", t.join().unwrap());
}
