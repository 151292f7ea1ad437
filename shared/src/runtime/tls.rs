//! Who vouches for the servers of others: the public certificate authorities, and private ones that an operator names.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// The certificates of the public authorities. They are compiled in; only a function that uses them links them.
pub fn public_authorities() -> RootCertStore {
    RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() }
}

/// The public authorities, and those whose certificates are in `file`, as PEM. A file that cannot be used is told in the log: servers that the
/// public ones vouch for are still reached.
pub fn authorities_with(file: &Path) -> RootCertStore {
    let mut authorities = public_authorities();
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    match certificates.map(|certificates| authorities.add_parsable_certificates(certificates)) {
        Ok((1.., 0)) => {}
        Ok((used, ignored)) => tracing::error!(used, ignored, "certificates of SSL_CERT_FILE are not used"),
        Err(error) => tracing::error!(%error, "SSL_CERT_FILE cannot be read"),
    }
    authorities
}

/// The TLS of a client that connects to servers for which `authorities` vouch.
///
/// # Errors
/// Where the cryptography supports no version of TLS. The linked one does.
pub fn client_config(authorities: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(versions.with_root_certificates(authorities).with_no_client_auth())
}
