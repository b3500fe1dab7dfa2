//! What a stream is called: in events, and in the probe's maps.

use observer_ebpf::wire::{StreamKey, stream_kind};

use crate::capture::{StreamId, StreamKind};

/// The stream's name in events.
pub(in crate::capture::ebpf) fn id(key: StreamKey) -> StreamId {
    let kind = if key.kind == stream_kind::SOCKET {
        StreamKind::Socket
    } else {
        StreamKind::Pipe
    };
    StreamId {
        kind,
        object: key.object,
        scope: device_to_user(key.scope),
    }
}

/// The stream's name in the probe's maps.
pub(in crate::capture::ebpf) fn key(stream: StreamId) -> StreamKey {
    let kind = match stream.kind {
        StreamKind::Socket => stream_kind::SOCKET,
        StreamKind::Pipe | StreamKind::Relay => stream_kind::PIPE,
    };
    StreamKey {
        object: stream.object,
        scope: device_to_kernel(stream.scope),
        kind,
    }
}

/// From the kernel's own form of a device number (`major << 20 | minor`) to that of `st_dev`
/// (`new_encode_dev` of `include/linux/kdev_t.h`).
const fn device_to_user(device: u32) -> u32 {
    let (major, minor) = (device >> 20, device & 0xf_ffff);
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

/// The way back.
const fn device_to_kernel(device: u32) -> u32 {
    let major = (device >> 8) & 0xfff;
    let minor = (device & 0xff) | ((device >> 12) & 0xf_ff00);
    major << 20 | minor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_those_that_stat_shows() {
        let kernel = 259 << 20 | 0x1_2345;
        // As `makedev(259, 0x12345)` has it in its lower 32 bits.
        assert_eq!(device_to_user(kernel), 0x1231_0345);
        assert_eq!(device_to_kernel(device_to_user(kernel)), kernel);
        assert_eq!(device_to_user(0), 0);
    }

    #[test]
    fn a_stream_keeps_its_name_both_ways() {
        for kind in [stream_kind::PIPE, stream_kind::SOCKET] {
            let name = StreamKey {
                object: 7,
                scope: 8 << 20 | 3,
                kind,
            };
            assert_eq!(key(id(name)), name);
        }
    }
}
