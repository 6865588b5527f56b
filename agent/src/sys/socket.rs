//! Unix sockets by a name in an open folder, and the addresses of this host.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};

/// Connect to the socket of that name in an open folder, at once or not at all.
///
/// The folder's own path may be longer than an address has room for: it is named by its descriptor.
/// EAGAIN where the listener has its hands full.
pub fn connect_in(folder: &File, name: &str) -> io::Result<UnixStream> {
    let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    let address = SocketAddrUnix::new(path).map_err(|_| Errno::NAMETOOLONG)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    connect(&socket, &address)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// The addresses of each network interface that is up, none for one without.
pub fn interface_addresses() -> io::Result<BTreeMap<String, Vec<IpAddr>>> {
    let mut first = std::ptr::null_mut::<libc::ifaddrs>();
    // SAFETY: the call fills a list of its own, which is given back below.
    if unsafe { libc::getifaddrs(&raw mut first) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let mut found: BTreeMap<String, Vec<IpAddr>> = BTreeMap::new();
    let mut next = first;
    // SAFETY: an entry of the list, which ends with null.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ifa_next;
        if entry.ifa_flags & libc::IFF_UP as u32 == 0 {
            continue;
        }
        // SAFETY: a name ends with a zero.
        let name = unsafe { CStr::from_ptr(entry.ifa_name) }.to_string_lossy().into_owned();
        // SAFETY: an address is null, or of the length of its family.
        let address = unsafe { ip_address(entry.ifa_addr) };
        found.entry(name).or_default().extend(address);
    }
    // SAFETY: it is the list from above, and nothing of it is kept.
    unsafe { libc::freeifaddrs(first) };
    Ok(found)
}

/// SAFETY: `address` is null, or as long as its family says.
unsafe fn ip_address(address: *const libc::sockaddr) -> Option<IpAddr> {
    // SAFETY: as promised.
    match i32::from(unsafe { address.as_ref() }?.sa_family) {
        libc::AF_INET => {
            // SAFETY: as promised.
            let four = unsafe { address.cast::<libc::sockaddr_in>().read_unaligned() };
            Some(Ipv4Addr::from(four.sin_addr.s_addr.to_ne_bytes()).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as promised.
            let six = unsafe { address.cast::<libc::sockaddr_in6>().read_unaligned() };
            Some(Ipv6Addr::from(six.sin6_addr.s6_addr).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;
    use std::fs;
    use std::os::unix::net::UnixListener;

    #[test]
    fn the_loopback_has_its_addresses() {
        let addresses = interface_addresses().unwrap();
        assert!(addresses["lo"].contains(&IpAddr::from([127, 0, 0, 1])), "{addresses:?}");
    }

    #[test]
    fn a_socket_is_reached_by_its_name_however_long_its_path_is() {
        let tree = TestFolder::new();
        let deep = tree.path().join("x".repeat(120));
        fs::create_dir(&deep).unwrap();
        let folder = File::open(&deep).unwrap();
        let errno = |name: &str| connect_in(&folder, name).unwrap_err().raw_os_error();
        assert_eq!(errno("gone"), Some(libc::ENOENT));
        assert_eq!(errno(&"x".repeat(100)), Some(libc::ENAMETOOLONG));
        let short = format!("/proc/self/fd/{}/s", folder.as_raw_fd());
        let listener = UnixListener::bind(short).unwrap();
        connect_in(&folder, "s").unwrap();
        drop(listener);
        assert_eq!(errno("s"), Some(libc::ECONNREFUSED));
    }
}
