//! Unix sockets by a name in an open folder.

use std::fs::File;
use std::io;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::TestFolder;
    use std::fs;
    use std::os::unix::net::UnixListener;

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
