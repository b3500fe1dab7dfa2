//! The kernel probe: loads the BPF programs, and turns their records into capture events.
//!
//! Owns everything between `bpf(2)` and the event channel. [`Probe::load`] looks up the kernel's
//! layouts, loads and attaches; [`Probe::run`] reads the ring on a thread of its own; a [`Handle`]
//! steers it from elsewhere. Nothing is pinned: when the process ends, however it ends, the kernel
//! detaches the programs.

mod assemble;
mod btf;
mod control;
mod decode;
mod error;
mod log;
mod offsets;
mod platform;
mod reader;
mod streams;
mod writers;

use std::os::fd::AsFd;

use aya::maps::{Array, HashMap, MapData, PerCpuArray, RingBuf};
use aya::programs::raw_trace_point::RawTracePointLink;
use aya::programs::trace_point::TracePointLink;
use aya::programs::{ProgramError, RawTracePoint, TracePoint};
use aya::{Ebpf, EbpfError, EbpfLoader};
use observer_ebpf::config::Config;
use observer_ebpf::syscall::{self, Arch};
use observer_ebpf::wire::{Counters, StreamKey, StreamState};
use zerocopy::{FromZeros, IntoBytes};

use crate::capture::{Clock, Loss, Pid, StreamId};

pub use assemble::Assembler;
pub use btf::{Btf, BtfError};
pub use control::{Control, Handle};
pub use decode::Fault;
pub use error::{OLDEST_KERNEL, ProbeError, SMALLEST_RING};

/// The ring's size unless told otherwise, in bytes: holds 20 messages of 1 MB three times over.
pub const DEFAULT_RING: u32 = 64 << 20;

/// The programs of the object, each named like the tracepoint that it belongs to, but for the
/// scheduler's prefix. The order is that of attaching: processes before what they do.
const PROGRAMS: [(&str, &str); 5] = [
    ("process_fork", "sched_process_fork"),
    ("process_exec", "sched_process_exec"),
    ("process_exit", "sched_process_exit"),
    ("signal_generate", "signal_generate"),
    ("sys_exit", "sys_exit"),
];

/// The last of them, by another way: see [`platform::preempts_raw_tracepoints`].
const EVENT: (&str, &str, &str) = ("sys_exit_event", "raw_syscalls", "sys_exit");

/// The object that `cargo xtask ebpf` built and `build.rs` checked.
static OBJECT: &[u8] = aya::include_bytes_aligned!(env!("OBSERVER_PROBE_OBJECT"));

/// Who is watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// These processes, and all that they start. May be empty at first: see
    /// [`Probe::watch_pid`].
    Pids(Vec<Pid>),
    /// Every process but the observer.
    Machine,
}

/// How the probe is loaded.
#[derive(Clone, Debug)]
pub struct Options {
    /// The ring buffer's size in bytes: a power of two, at least [`SMALLEST_RING`].
    pub ring_bytes: u32,
    /// Who is watched.
    pub scope: Scope,
    /// The zero of all timestamps.
    pub clock: Clock,
    /// What to do with the programs' own diagnostics, one line each. `None` compiles them out:
    /// the verifier drops code that cannot run.
    pub log: Option<fn(&str)>,
}

impl Options {
    /// The default ring, and time that counts from now.
    pub fn new(scope: Scope) -> Self {
        Self {
            ring_bytes: DEFAULT_RING,
            scope,
            clock: Clock::start(),
            log: None,
        }
    }
}

/// The loaded and attached programs. Dropping it detaches them.
pub struct Probe {
    links: Vec<Link>,
    /// Why system calls are not seen by [`EVENT`], where they should be.
    no_event: Option<ProbeError>,
    /// Keeps the program descriptors, for their counts of missed runs.
    ebpf: Ebpf,
    ring: RingBuf<MapData>,
    maps: Maps,
    log: Option<log::Log>,
    clock: Clock,
    handle: Handle,
    control: control::Receiver,
    /// Streams that were open before.
    joined: Vec<StreamId>,
}

/// Detaches when it is dropped; keeps the program alive until then.
enum Link {
    Raw {
        tracepoint: &'static str,
        _link: RawTracePointLink,
    },
    Event {
        _link: TracePointLink,
    },
}

/// The maps that user space reads and writes. Keys and values are the bytes of wire types:
/// [`aya::Pod`] cannot be implemented for another crate's types.
struct Maps {
    scope: HashMap<MapData, u32, u8>,
    streams: HashMap<MapData, [u8; size_of::<StreamKey>()], [u8; size_of::<StreamState>()]>,
    given_up: HashMap<MapData, [u8; size_of::<StreamKey>()], u8>,
    counters: PerCpuArray<MapData, [u8; size_of::<Counters>()]>,
    reader_asleep: Array<MapData, u32>,
}

impl Probe {
    /// Loads and attaches the programs. From then on records gather in the ring.
    ///
    /// # Errors
    ///
    /// Where this kernel, or this process's rights, do not allow it: see [`ProbeError`].
    pub fn load(options: &Options) -> Result<Self, ProbeError> {
        let ring_bytes = options.ring_bytes;
        if !ring_bytes.is_power_of_two() || ring_bytes < SMALLEST_RING {
            return Err(ProbeError::RingSize(ring_bytes));
        }
        let arch = Arch::host().ok_or(ProbeError::Architecture(std::env::consts::ARCH))?;
        platform::check_kernel()?;
        platform::check_pid_namespace()?;
        let config = configure(options, arch)?;
        let syscalls = syscall::table(arch);
        let mut ebpf = EbpfLoader::new()
            .override_global("CONFIG", config.as_bytes(), true)
            .override_global("SYSCALLS", syscalls.as_slice(), true)
            .override_global(aya_log::LEVEL, log::level(options), true)
            .map_max_entries("RING", ring_bytes)
            .load(OBJECT)
            .map_err(|error| load_error(error, ring_bytes))?;
        let maps = Maps::take(&mut ebpf)?;
        let ring = take(&mut ebpf, "RING")?;
        let (handle, control) = control::channel()?;
        let log = options
            .log
            .map(|line| log::Log::open(&mut ebpf, line))
            .transpose()?;
        let (links, clock) = (Vec::new(), options.clock);
        let mut probe = Self {
            links,
            no_event: None,
            ebpf,
            ring,
            maps,
            log,
            clock,
            handle,
            control,
            joined: Vec::new(),
        };
        if let Scope::Pids(pids) = &options.scope {
            for &pid in pids {
                probe.watch_pid(pid)?;
            }
        }
        for (program, tracepoint) in PROGRAMS {
            if tracepoint == EVENT.2 && platform::preempts_raw_tracepoints() {
                probe.no_event = probe.attach_event().err();
                if probe.no_event.is_none() {
                    continue;
                }
                // The other will do, with gaps: the runs that it misses are counted.
            }
            probe.attach(program, tracepoint)?;
        }
        Ok(probe)
    }

    fn attach_event(&mut self) -> Result<(), ProbeError> {
        let (name, category, event) = EVENT;
        let failed = |error| program_error(name, error);
        let program = self
            .ebpf
            .program_mut(name)
            .ok_or(ProbeError::Missing(name))?;
        let program: &mut TracePoint = program.try_into().map_err(failed)?;
        program.load().map_err(failed)?;
        let link = program.attach(category, event).map_err(failed)?;
        let link = program.take_link(link).map_err(failed)?;
        self.links.push(Link::Event { _link: link });
        Ok(())
    }

    fn attach(&mut self, name: &'static str, tracepoint: &'static str) -> Result<(), ProbeError> {
        let failed = |error| program_error(name, error);
        let program = self
            .ebpf
            .program_mut(name)
            .ok_or(ProbeError::Missing(name))?;
        let program: &mut RawTracePoint = program.try_into().map_err(failed)?;
        program.load().map_err(failed)?;
        let link = program.attach(tracepoint).map_err(failed)?;
        let link = program.take_link(link).map_err(failed)?;
        self.links.push(Link::Raw {
            tracepoint,
            _link: link,
        });
        Ok(())
    }

    /// What the probe is attached to, each as `raw_tracepoint/NAME` or `tracepoint/CATEGORY/NAME`,
    /// for the log.
    pub fn hooks(&self) -> Vec<String> {
        let hooks = self.links.iter().map(|link| match link {
            Link::Raw { tracepoint, .. } => format!("raw_tracepoint/{tracepoint}"),
            Link::Event { .. } => format!("tracepoint/{}/{}", EVENT.1, EVENT.2),
        });
        hooks.collect()
    }

    /// Why this kernel may skip the probe's program for system calls now and then; `None` where it
    /// does not. What it skips is counted, as events that were lost.
    pub const fn skipped_because(&self) -> Option<&ProbeError> {
        self.no_event.as_ref()
    }

    /// Watches a process, and all that it starts from now on.
    ///
    /// # Errors
    ///
    /// Where the kernel's map is full.
    pub fn watch_pid(&mut self, pid: Pid) -> Result<(), ProbeError> {
        self.maps.watch(pid)
    }

    /// Says of a stream that it was open before: what is read of it first may have been written
    /// before.
    pub fn note_joined(&mut self, stream: StreamId) {
        self.joined.push(stream);
    }

    /// Steers the probe while [`run`](Self::run) has it.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// From the kernel's time to [`Timestamp`](crate::capture::Timestamp)s.
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The counters so far, of all CPUs, and the runs that programs missed.
    ///
    /// # Errors
    ///
    /// Where the kernel does not let them be read.
    pub fn counters(&self) -> Result<Loss, ProbeError> {
        let mut loss = self.maps.counters()?;
        loss.events_lost += self.missed_runs();
        Ok(loss)
    }

    /// How often the kernel skipped a program because it was running already on that CPU.
    fn missed_runs(&self) -> u64 {
        let fds = self
            .ebpf
            .programs()
            .filter_map(|(_, program)| program.fd().ok());
        fds.map(|fd| platform::missed_runs(fd.as_fd())).sum()
    }
}

impl Maps {
    fn take(ebpf: &mut Ebpf) -> Result<Self, ProbeError> {
        Ok(Self {
            scope: take(ebpf, "SCOPE")?,
            streams: take(ebpf, "STREAMS")?,
            given_up: take(ebpf, "GIVEN_UP")?,
            counters: take(ebpf, "COUNTERS")?,
            reader_asleep: take(ebpf, "READER_ASLEEP")?,
        })
    }

    fn watch(&mut self, pid: Pid) -> Result<(), ProbeError> {
        self.scope
            .insert(pid.0, 1, 0)
            .map_err(map_error("add to", "SCOPE"))
    }

    /// The watched processes; empty where the whole machine is watched.
    fn watched(&self) -> Vec<Pid> {
        self.scope.keys().filter_map(Result::ok).map(Pid).collect()
    }

    fn unwatch(&mut self, pid: Pid) {
        // It may have ended and be gone already.
        let _gone = self.scope.remove(&pid.0);
    }

    fn give_up(&mut self, key: StreamKey) -> Result<(), ProbeError> {
        let key: [u8; size_of::<StreamKey>()] = zerocopy::transmute!(key);
        self.given_up
            .insert(key, 1, 0)
            .map_err(map_error("add to", "GIVEN_UP"))
    }

    fn forget(&mut self, key: StreamKey) {
        let key: [u8; size_of::<StreamKey>()] = zerocopy::transmute!(key);
        // The kernel may have dropped either already.
        let _gone = self.given_up.remove(&key);
        let _gone = self.streams.remove(&key);
    }

    fn stream(&self, key: StreamKey) -> Option<StreamState> {
        let state = self.streams.get(&zerocopy::transmute!(key), 0).ok()?;
        Some(zerocopy::transmute!(state))
    }

    /// Every stream that the kernel knows.
    fn all_streams(&self) -> Vec<(StreamKey, StreamState)> {
        let known = self.streams.iter().filter_map(Result::ok);
        known
            .map(|(key, state)| (zerocopy::transmute!(key), zerocopy::transmute!(state)))
            .collect()
    }

    fn counters(&self) -> Result<Loss, ProbeError> {
        let cpus = self
            .counters
            .get(&0, 0)
            .map_err(map_error("read", "COUNTERS"))?;
        Ok(cpus.iter().fold(Loss::default(), |sum, &cpu| {
            let cpu: Counters = zerocopy::transmute!(cpu);
            Loss {
                seen: sum.seen + cpu.seen,
                submitted: sum.submitted + cpu.submitted,
                ring_full: sum.ring_full + cpu.ring_full,
                unreadable: sum.unreadable + cpu.unreadable,
                filtered: sum.filtered + cpu.filtered,
                events_lost: sum.events_lost + cpu.events_lost,
            }
        }))
    }

    fn set_asleep(&mut self, asleep: bool) -> Result<(), ProbeError> {
        let flag = u32::from(asleep);
        self.reader_asleep
            .set(0, flag, 0)
            .map_err(map_error("write", "READER_ASLEEP"))
    }
}

/// What the probe is told before it is loaded.
fn configure(options: &Options, arch: Arch) -> Result<Config, ProbeError> {
    let bytes = platform::kernel_btf()?;
    let btf = Btf::parse(&bytes)?;
    let mut config = Config::new_zeroed();
    config.machine = u32::from(options.scope == Scope::Machine);
    config.observer = std::process::id();
    config.wakeup_bytes = u64::from(options.ring_bytes / 4);
    config.offsets = offsets::offsets(&btf, arch)?;
    config.registers = offsets::registers(&btf, arch)?;
    Ok(config)
}

fn take<M: TryFrom<aya::maps::Map, Error = aya::maps::MapError>>(
    ebpf: &mut Ebpf,
    name: &'static str,
) -> Result<M, ProbeError> {
    let map = ebpf.take_map(name).ok_or(ProbeError::Missing(name))?;
    M::try_from(map).map_err(map_error("use", name))
}

fn map_error(
    operation: &'static str,
    map: &'static str,
) -> impl Fn(aya::maps::MapError) -> ProbeError {
    move |source| ProbeError::Map {
        operation,
        map,
        source: Box::new(source),
    }
}

/// Says in our words why the object could not be loaded.
fn load_error(error: EbpfError, ring_bytes: u32) -> ProbeError {
    if let EbpfError::MapError(aya::maps::MapError::CreateError { io_error, .. }) = &error
        && io_error.raw_os_error() == Some(libc::EPERM)
    {
        let source = std::io::Error::from_raw_os_error(libc::EPERM);
        return match platform::missing_capabilities() {
            Some(missing) => ProbeError::NotPermitted { missing, source },
            None => ProbeError::MemoryLock(ring_bytes),
        };
    }
    ProbeError::Load(Box::new(error))
}

/// Says in our words why a program could not be loaded or attached.
fn program_error(program: &'static str, error: ProgramError) -> ProbeError {
    match error {
        ProgramError::LoadError {
            io_error: source,
            verifier_log,
        } => {
            let log = verifier_log.to_string();
            let silent = log.trim().is_empty() && source.raw_os_error() == Some(libc::EPERM);
            match platform::missing_capabilities() {
                Some(missing) if silent => ProbeError::NotPermitted { missing, source },
                None if silent => ProbeError::Lockdown {
                    program,
                    lockdown: platform::lockdown(),
                    source,
                },
                _ => ProbeError::Rejected {
                    program,
                    log,
                    source,
                },
            }
        }
        source => ProbeError::Attach {
            program,
            source: Box::new(source),
        },
    }
}
