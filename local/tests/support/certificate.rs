//! Makes a server's certificate and the private authority that signs it.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The TLS configuration of a server and the authority of its certificate.
pub struct Certified {
    /// The server's configuration.
    pub config: ServerConfig,
    /// The authority.
    pub authority: CertificateDer<'static>,
}

impl Certified {
    /// A server with this name or address.
    ///
    /// # Errors
    /// When no certificate can be made.
    pub fn new(name: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let mut params = CertificateParams::new([])?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let key = KeyPair::generate()?;
        let certificate = CertificateParams::new([name.to_owned()])?.signed_by(&key, &authority)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![certificate.der().clone()], key)?;
        Ok(Self { config, authority: authority.der().clone() })
    }

    /// The authority, as PEM.
    pub fn pem(&self) -> String {
        let authority = BASE64_STANDARD.encode(&self.authority);
        format!("-----BEGIN CERTIFICATE-----\n{authority}\n-----END CERTIFICATE-----\n")
    }
}
