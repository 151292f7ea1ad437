//! The certificate authorities that the service trusts: the public ones, and private ones that an operator names.

use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

/// The TLS of a client that trusts the public authorities and the private ones whose certificates are in `file`, as
/// PEM. If the file cannot be used, the log reports it, and servers with a public certificate are still reached. Only a
/// function that calls this links the public authorities.
///
/// # Errors
/// An error where the cryptography supports no version of TLS. The linked one supports TLS.
pub fn client_config(file: Option<&Path>) -> Result<ClientConfig, rustls::Error> {
    let mut authorities = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(file) = file {
        add(&mut authorities, file);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(versions.with_root_certificates(authorities).with_no_client_auth())
}

fn add(authorities: &mut RootCertStore, file: &Path) {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect);
    match certificates.map(|certificates| authorities.add_parsable_certificates(certificates)) {
        Ok((1.., 0)) => {}
        Ok((used, ignored)) => tracing::error!(used, ignored, "certificates of SSL_CERT_FILE are not used"),
        Err(error) => tracing::error!(%error, "SSL_CERT_FILE cannot be read"),
    }
}
