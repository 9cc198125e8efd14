//! HTTPS for the metrics: the certificate from files, read again when they change, or a self-signed one.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::serve::Listener;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use parking_lot::RwLock;
use shed_agent::connection::{BoundedListener, BoundedStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;

/// A client that has not greeted after this time is closed.
const GREETING_PATIENCE: Duration = Duration::from_secs(10);
/// The files are looked at this often. The kubelet renews a mounted Secret within about a minute.
const FILES_PERIOD: Duration = Duration::from_secs(10);
/// The files of a mounted Secret of the type kubernetes.io/tls.
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
/// The name in a self-signed certificate.
const SELF_SIGNED: &str = "shed-metrics";

/// A new certificate for this name in memory, and its key, for clients that do not verify it.
fn self_signed(name: &str) -> anyhow::Result<(CertificateDer<'static>, PrivateKeyDer<'static>)> {
    let made = rcgen::generate_simple_self_signed([name.to_owned()]);
    let made = made.context("self-signed certificate")?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((made.cert.der().clone(), key.into()))
}

/// The certificate that the server shows now.
pub struct Certificates {
    config: RwLock<Arc<ServerConfig>>,
    /// Absent: it is self-signed and does not change.
    folder: Option<PathBuf>,
}

/// The files' contents.
#[derive(PartialEq, Eq)]
struct Files {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Certificates {
    /// The certificate of this folder, or a self-signed one.
    pub fn open(folder: Option<&Path>) -> anyhow::Result<Self> {
        let config = match folder {
            Some(folder) => Files::read(folder)?.config()?,
            None => {
                let (certificate, key) = self_signed(SELF_SIGNED)?;
                configuration(vec![certificate], key)?
            }
        };
        Ok(Self {
            config: RwLock::new(config),
            folder: folder.map(Path::to_owned),
        })
    }

    /// Reads the files again whenever they have changed, without end.
    pub async fn follow(&self) {
        let Some(folder) = &self.folder else {
            return std::future::pending().await;
        };
        let mut read = Files::read(folder).ok();
        loop {
            sleep(FILES_PERIOD).await;
            match Files::read(folder) {
                Ok(files) if read.as_ref() == Some(&files) => {}
                Ok(files) => {
                    self.take(&files);
                    read = Some(files);
                }
                Err(error) => tracing::warn!("certificate of the metrics: {error:#}"),
            }
        }
    }

    fn take(&self, files: &Files) {
        match files.config() {
            Ok(config) => {
                let mut current = self.config.write();
                *current = config;
                tracing::info!("the certificate of the metrics was renewed");
            }
            Err(error) => {
                tracing::warn!("certificate of the metrics, the one before stays: {error:#}");
            }
        }
    }

    fn acceptor(&self) -> TlsAcceptor {
        let config = self.config.read();
        TlsAcceptor::from(Arc::clone(&config))
    }
}

impl Files {
    fn read(folder: &Path) -> anyhow::Result<Self> {
        let read = |name| {
            let path = folder.join(name);
            std::fs::read(&path).with_context(|| format!("--metrics-cert-dir: {}", path.display()))
        };
        Ok(Self {
            certificate: read(CERTIFICATE)?,
            key: read(KEY)?,
        })
    }

    fn config(&self) -> anyhow::Result<Arc<ServerConfig>> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.certificate).collect();
        let chain = chain.with_context(|| format!("{CERTIFICATE} is not in PEM"))?;
        let key = PrivateKeyDer::from_pem_slice(&self.key);
        let key = key.with_context(|| format!("{KEY} has no private key in PEM"))?;
        configuration(chain, key)
            .with_context(|| format!("{CERTIFICATE} and {KEY} do not fit together"))
    }
}

fn configuration(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> anyhow::Result<Arc<ServerConfig>> {
    let builder = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions()?;
    let mut config = builder.with_no_client_auth().with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

type Greeting =
    Pin<Box<dyn Future<Output = Option<(TlsStream<BoundedStream>, SocketAddr)>> + Send>>;

/// A listener that speaks TLS. Its connections keep within the limits of the one below it, and a slow greeting does not
/// delay others.
pub struct TlsListener {
    listener: BoundedListener,
    certificates: Arc<Certificates>,
    greetings: FuturesUnordered<Greeting>,
}

impl TlsListener {
    /// Speaks TLS on the connections of `listener`.
    pub fn new(listener: BoundedListener, certificates: Arc<Certificates>) -> Self {
        Self {
            listener,
            certificates,
            greetings: FuturesUnordered::new(),
        }
    }

    fn greet(&self, stream: BoundedStream, peer: SocketAddr) {
        let greeting = self.certificates.acceptor().accept(stream);
        self.greetings.push(Box::pin(async move {
            let greeted = timeout(GREETING_PATIENCE, greeting).await;
            match greeted {
                Ok(Ok(stream)) => Some((stream, peer)),
                Ok(Err(error)) => {
                    tracing::debug!(%error, %peer, "TLS greeting");
                    None
                }
                Err(_) => None,
            }
        }));
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<BoundedStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            tokio::select! {
                (stream, peer) = self.listener.accept() => self.greet(stream, peer),
                greeted = self.greetings.next(), if !self.greetings.is_empty() => {
                    if let Some(Some(greeted)) = greeted {
                        return greeted;
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

#[cfg(test)]
mod tests;
