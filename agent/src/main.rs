//! Start: in a guest make its system; split off the keeper, attend to signals, serve. Or be the
//! native engine.

use std::env;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;

use iolab_agent::lease::Lease;
use iolab_agent::serve::{CODE_FAULT, serve};
use iolab_agent::sys::process::own_program;
use iolab_agent::wire::Outbox;
use iolab_agent::{checkpoint, error, guest, keeper, kvcache, native, s3, training};

fn main() -> ExitCode {
    match env::args().nth(1).as_deref() {
        None => {}
        Some("--version") => {
            println!("iolab-agent {}", env!("CARGO_PKG_VERSION"));
            return ExitCode::SUCCESS;
        }
        Some("engine") => return native::main(),
        Some("checkpoint") => return checkpoint::main(),
        Some("kv-cache") => return kvcache::main(),
        Some("objects") => return s3::main(),
        Some("objects-null-server") => {
            return s3::null_server::main(&env::args().skip(2).collect::<Vec<_>>());
        }
        Some("training-read") => return training::main(),
        Some(other) => {
            eprintln!("iolab-agent: it takes no argument but --version or engine, not {other}");
            return ExitCode::from(2);
        }
    }
    if env::args_os().next().is_some_and(|name| guest::is_first_process(&name)) {
        guest::become_init();
    }
    let _ = own_program(); // Now, while the root is that of whoever started it.
    if let Err(error) = keeper::fork_keeper() {
        eprintln!("iolab-agent: cannot start: {}", error::io_error_text(&error));
        return ExitCode::from(70);
    }
    let lease = Arc::new(Lease::default());
    let attendant = Arc::clone(&lease);
    if let Err(error) = thread::Builder::new().spawn(move || attendant.run_housekeeping()) {
        eprintln!("iolab-agent: cannot start a thread: {}", error::io_error_text(&error));
        return ExitCode::from(70);
    }
    // Not through Rust's stdout, which looks for line ends in what is not lines.
    match io::stdout().as_fd().try_clone_to_owned() {
        Ok(output) => serve(&mut io::stdin().lock(), Outbox::new(File::from(output)), lease),
        Err(error) => {
            eprintln!("iolab-agent: it has no standard output: {}", error::io_error_text(&error));
            ExitCode::from(CODE_FAULT as u8)
        }
    }
}
