//! Addresses of the internet, as the kernel and its callers write them.

use std::net::SocketAddr;

/// A `struct sockaddr_in` or `struct sockaddr_in6`.
pub(super) fn parse_address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(bytes.get(..2)?.try_into().ok()?));
    let port = u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?);
    match family {
        libc::AF_INET => {
            let address: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some((address, port).into())
        }
        libc::AF_INET6 => {
            let address: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some((address, port).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_of_the_internet() {
        let v4 = [2, 0, 0x1f, 0x90, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(parse_address(&v4), "127.0.0.1:8080".parse().ok());
        let mut v6 = [0; 28];
        v6[..4].copy_from_slice(&[10, 0, 0x1f, 0x90]);
        v6[23] = 1;
        assert_eq!(parse_address(&v6), "[::1]:8080".parse().ok());
        assert_eq!(parse_address(&v6[..20]), None);
        assert_eq!(parse_address(&[1, 0, b'/', b'x']), None);
        assert_eq!(parse_address(&[]), None);
    }
}
