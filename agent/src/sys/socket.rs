//! Unix sockets by a name in an open folder.

use std::fs::File;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;

use super::check;

/// Connect to the socket of that name in an open folder, at once or not at all.
///
/// The folder's own path may be longer than an address has room for: it is named by its descriptor.
/// EAGAIN where the listener has its hands full.
pub fn connect_in(folder: &File, name: &str) -> io::Result<UnixStream> {
    let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd());
    let mut address = libc::sockaddr_un { sun_family: libc::AF_UNIX as _, sun_path: [0; 108] };
    if path.len() >= address.sun_path.len() || path.contains('\0') {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (to, from) in address.sun_path.iter_mut().zip(path.bytes()) {
        *to = from as libc::c_char;
    }
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the new descriptor is owned by nobody else.
    let stream = unsafe { UnixStream::from_raw_fd(check(libc::socket(libc::AF_UNIX, kind, 0))?) };
    let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
    // SAFETY: a whole address, which ends with NUL, and its own size.
    check(unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), size) })?;
    stream.set_nonblocking(false)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Folder;
    use std::fs;
    use std::os::unix::net::UnixListener;

    #[test]
    fn a_socket_is_reached_by_its_name_however_long_its_path_is() {
        let tree = Folder::new();
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
