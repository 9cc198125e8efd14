//! Certificates, and connections of a client that verifies them.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::*;

const LIMITS: shed_agent::connection::Limits = shed_agent::connection::Limits {
    connections: 8,
    per_peer: 8,
    life: Duration::from_secs(60),
    bytes: 64 * 1024,
};

/// A client that trusts this certificate alone.
fn client(trusted: CertificateDer<'static>) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(trusted).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(roots).with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

/// A folder with this certificate and key.
fn write(folder: &Path, certificate: &CertificateDer<'_>, key: &PrivateKeyDer<'_>) {
    let pem = |kind: &str, der: &[u8]| {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(der);
        format!("-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n")
    };
    std::fs::write(folder.join(CERTIFICATE), pem("CERTIFICATE", certificate)).unwrap();
    std::fs::write(folder.join(KEY), pem("PRIVATE KEY", key.secret_der())).unwrap();
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("shed-tls-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Serves one word to each client.
async fn serve(certificates: Arc<Certificates>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut listener = TlsListener::new(BoundedListener::new(listener, LIMITS), certificates);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await;
            let _ = stream.write_all(b"hello").await;
            let _ = stream.shutdown().await;
        }
    });
    address
}

async fn greet(address: SocketAddr, client: &TlsConnector) -> io::Result<String> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from(SELF_SIGNED).unwrap();
    let mut stream = client.connect(name, stream).await?;
    let mut word = String::new();
    stream.read_to_string(&mut word).await?;
    Ok(word)
}

#[tokio::test]
async fn a_self_signed_certificate_is_a_valid_one() {
    let (certificate, key) = self_signed(SELF_SIGNED).unwrap();
    let config = RwLock::new(configuration(vec![certificate.clone()], key).unwrap());
    let certificates = Certificates {
        config,
        folder: None,
    };
    let address = serve(Arc::new(certificates)).await;
    // A client that does not greet delays no other.
    let silent = TcpStream::connect(address).await.unwrap();
    assert_eq!(greet(address, &client(certificate)).await.unwrap(), "hello");
    let (other, _) = self_signed(SELF_SIGNED).unwrap();
    assert!(greet(address, &client(other)).await.is_err());
    drop(silent);
}

#[tokio::test(start_paused = true)]
async fn a_renewed_certificate_is_shown_and_a_broken_one_is_not() {
    let folder = folder("renewed");
    let (first, key) = self_signed(SELF_SIGNED).unwrap();
    write(&folder, &first, &key);
    let certificates = Arc::new(Certificates::open(Some(&folder)).unwrap());
    let now = || Arc::as_ptr(&certificates.config.read());
    let follower = Arc::clone(&certificates);
    let follower = tokio::spawn(async move { follower.follow().await });
    let began = now();
    sleep(2 * FILES_PERIOD).await;
    assert_eq!(now(), began, "nothing changed");
    let (second, other_key) = self_signed(SELF_SIGNED).unwrap();
    write(&folder, &second, &key);
    sleep(2 * FILES_PERIOD).await;
    assert_eq!(now(), began, "another key");
    write(&folder, &second, &other_key);
    sleep(2 * FILES_PERIOD).await;
    assert_ne!(now(), began);
    follower.abort();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let folder = folder("broken");
    let error = |folder: &Path| match Certificates::open(Some(folder)) {
        Ok(_) => String::new(),
        Err(error) => format!("{error:#}"),
    };
    assert!(error(&folder).contains("tls.crt"), "{}", error(&folder));
    let (certificate, key) = self_signed(SELF_SIGNED).unwrap();
    write(&folder, &certificate, &key);
    assert_eq!(error(&folder), "");
    std::fs::write(folder.join(KEY), "none").unwrap();
    assert!(error(&folder).contains("tls.key has no private key in PEM"));
    let (_, other) = self_signed(SELF_SIGNED).unwrap();
    write(&folder, &certificate, &other);
    assert!(error(&folder).contains("do not fit together"));
    std::fs::remove_dir_all(&folder).unwrap();
}
