//! A mount namespace of the agent: what is mounted in it is seen by its runs alone, and gone with
//! the last process that is in it.
//!
//! It is made when a file system is first wanted, and from then on each request is served in it: an
//! agent that mounts nothing sees the host's mounts as they are.

use std::fs::File;
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::error::sentence;
use crate::sys::mount;

static NAMESPACE: Mutex<Option<File>> = Mutex::new(None);

/// Move the calling thread into the namespace, which is made if there is none.
///
/// What the host mounts later still arrives where it shares its mounts.
pub fn seclude() -> io::Result<()> {
    let mut namespace = NAMESPACE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(namespace) = namespace.as_ref() {
        return mount::enter_mounts(namespace);
    }
    *namespace = Some(mount::leave_host_mounts()?);
    Ok(())
}

/// Why the namespace cannot be had, None when it can. The calling thread may have left the host's
/// mounts after this and should do nothing more.
#[must_use]
pub fn objection() -> Option<String> {
    let namespace = NAMESPACE.lock().unwrap_or_else(PoisonError::into_inner);
    if namespace.is_some() {
        return None;
    }
    let tried = mount::leave_host_mounts();
    tried.err().map(|error| format!("the agent may not mount anything: {}", sentence(&error)))
}

/// Move the calling thread into the namespace, if there is one.
pub fn follow() -> io::Result<()> {
    let namespace = NAMESPACE.lock().unwrap_or_else(PoisonError::into_inner);
    namespace.as_ref().map_or(Ok(()), mount::enter_mounts)
}
