//! A connection to a server: TCP as it is, or TLS over it; blocking or not, as its socket is.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::socket_error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};

/// Where distributions keep the certificates of authorities, in the order of how common they are.
const AUTHORITY_FILES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Of such a file.
const MAX_AUTHORITY_BYTES: u64 = 8 << 20;
/// Plain bytes that wait to be encrypted.
const TLS_BUFFER_BYTES: usize = 256 << 10;

/// What TLS needs to know of a server.
#[derive(Debug, Clone)]
pub struct TlsSettings {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsSettings {
    /// Of a server of that name, whose certificate those authorities have signed; a sentence where
    /// that cannot be.
    pub fn new(config: &Arc<ClientConfig>, host: &str) -> Result<Self, String> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("{host:?} is no name that a certificate may have."))?;
        Ok(Self { config: Arc::clone(config), name })
    }
}

/// What all TLS connections share. `authorities` are certificates in PEM; those of the host where
/// it is None.
pub fn tls_config(authorities: Option<&str>) -> Result<Arc<ClientConfig>, String> {
    let (text, source) = match authorities {
        Some(text) => (text.as_bytes().to_vec(), "target.ca_pem".to_owned()),
        None => host_authorities()?,
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate
            .map_err(|error| format!("{source} is no list of certificates: {error}."))?;
        // A bundle has old ones too that nobody can use; those that count are the others.
        let added = roots.add(certificate);
        if authorities.is_some() {
            added.map_err(|error| format!("A certificate of {source} cannot be used: {error}."))?;
        }
    }
    if roots.is_empty() {
        return Err(format!("{source} has no certificate in PEM."));
    }
    let provider = Arc::new(rustls_graviola::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}."))?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

fn host_authorities() -> Result<(Vec<u8>, String), String> {
    let path = AUTHORITY_FILES.iter().find(|path| Path::new(path).is_file()).ok_or_else(|| {
        format!(
            "No certificates of authorities are at {}; give target.ca_pem, or install \
             ca-certificates.",
            AUTHORITY_FILES.join(", ")
        )
    })?;
    let mut text = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(MAX_AUTHORITY_BYTES).read_to_end(&mut text))
        .map_err(|error| format!("{path} cannot be read: {error}."))?;
    Ok((text, (*path).to_owned()))
}

/// A connection.
#[derive(Debug)]
pub enum Transport {
    /// As it is.
    Plain(TcpStream),
    /// Encrypted.
    Tls(Box<TlsStream>),
}

/// An encrypted connection.
#[derive(Debug)]
pub struct TlsStream {
    socket: TcpStream,
    session: ClientConnection,
    /// Time that bytes took to be encrypted and decrypted.
    crypto_ns: u64,
}

/// What was agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFacts {
    /// Of the protocol.
    pub version: String,
    /// With which bytes are encrypted.
    pub cipher: String,
}

impl Transport {
    /// Connect within that time, and set up TLS where there are settings for it. The connection
    /// blocks, each call for at most that time.
    pub fn connect_blocking(
        address: &SocketAddr,
        tls: Option<&TlsSettings>,
        timeout: Duration,
    ) -> io::Result<Self> {
        let socket = TcpStream::connect_timeout(address, timeout)?;
        socket.set_nodelay(true)?;
        socket.set_read_timeout(Some(timeout))?;
        socket.set_write_timeout(Some(timeout))?;
        let mut transport = Self::from_socket(socket, tls)?;
        transport.continue_handshake()?;
        Ok(transport)
    }

    /// Begin to connect. The connection never blocks; it is there when its socket is writable and
    /// `connect_outcome` is no error.
    pub fn start_connect(address: &SocketAddr, tls: Option<&TlsSettings>) -> io::Result<Self> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = socket_with(family, SocketType::STREAM, flags, None)?;
        match connect(&socket, address) {
            Ok(()) | Err(Errno::INPROGRESS) => {}
            Err(error) => return Err(error.into()),
        }
        let socket = TcpStream::from(socket);
        socket.set_nodelay(true)?;
        Self::from_socket(socket, tls)
    }

    fn from_socket(socket: TcpStream, tls: Option<&TlsSettings>) -> io::Result<Self> {
        let Some(TlsSettings { config, name }) = tls else { return Ok(Self::Plain(socket)) };
        let mut session =
            ClientConnection::new(Arc::clone(config), name.clone()).map_err(tls_error)?;
        session.set_buffer_limit(Some(TLS_BUFFER_BYTES));
        Ok(Self::Tls(Box::new(TlsStream { socket, session, crypto_ns: 0 })))
    }

    /// What became of a connect that was begun.
    pub fn connect_outcome(&self) -> io::Result<()> {
        match socket_error(self)? {
            Ok(()) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Go on with setting TLS up; `WouldBlock` until that is done.
    pub fn continue_handshake(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => {
                while stream.session.is_handshaking() {
                    stream.write_out()?;
                    if !stream.session.is_handshaking() {
                        break;
                    }
                    stream.read_in()?;
                }
                stream.write_out()
            }
        }
    }

    /// Give bytes to the kernel, as many as it takes.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => retry_interrupted(|| socket.write(bytes)),
            Self::Tls(stream) => {
                stream.write_out()?;
                let before = Instant::now();
                let taken = stream.session.writer().write(bytes)?;
                stream.crypto_ns += before.elapsed().as_nanos() as u64;
                match stream.write_out() {
                    Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
                    _ if taken == 0 && !bytes.is_empty() => Err(ErrorKind::WouldBlock.into()),
                    _ => Ok(taken),
                }
            }
        }
    }

    /// Give the kernel what was encrypted and not taken by it; `WouldBlock` while there is more.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(stream) => stream.write_out(),
        }
    }

    /// Take bytes that have come; none at the end of the connection.
    pub fn recv(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => retry_interrupted(|| socket.read(buffer)),
            Self::Tls(stream) => loop {
                match stream.session.reader().read(buffer) {
                    Ok(bytes) => return Ok(bytes),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => stream.read_in()?,
                    // Closed without a word of TLS, as many servers do.
                    Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                    Err(error) => return Err(error),
                }
            },
        }
    }

    /// Have calls return at once from now on.
    pub fn set_nonblocking(&self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.set_nonblocking(true),
            Self::Tls(stream) => stream.socket.set_nonblocking(true),
        }
    }

    /// The time that bytes took to be encrypted and decrypted since the last look.
    pub fn take_crypto_ns(&mut self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Tls(stream) => std::mem::take(&mut stream.crypto_ns),
        }
    }

    /// Whether bytes are encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// What was agreed on; None without TLS, or before it is set up.
    #[must_use]
    pub fn tls_facts(&self) -> Option<TlsFacts> {
        let Self::Tls(stream) = self else { return None };
        Some(TlsFacts {
            version: format!("{:?}", stream.session.protocol_version()?),
            cipher: format!("{:?}", stream.session.negotiated_cipher_suite()?.suite()),
        })
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(socket) => socket.as_fd(),
            Self::Tls(stream) => stream.socket.as_fd(),
        }
    }
}

impl TlsStream {
    fn write_out(&mut self) -> io::Result<()> {
        while self.session.wants_write() {
            retry_interrupted(|| self.session.write_tls(&mut self.socket))?;
        }
        Ok(())
    }

    /// Take what has come once, and decrypt it.
    fn read_in(&mut self) -> io::Result<()> {
        if retry_interrupted(|| self.session.read_tls(&mut self.socket))? == 0
            && self.session.is_handshaking()
        {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let before = Instant::now();
        let state = self.session.process_new_packets();
        self.crypto_ns += before.elapsed().as_nanos() as u64;
        if state.is_err() {
            // The alert tells the server why; it may be gone already.
            let _ = self.session.write_tls(&mut self.socket);
        }
        state.map(|_| ()).map_err(tls_error)
    }
}

fn tls_error(error: rustls::Error) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, error)
}

fn retry_interrupted<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}
