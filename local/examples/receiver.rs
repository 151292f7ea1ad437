//! `receiver ADDRESS AUTHORITY`: a customer's server with TLS, which prints a line of JSON for each event: its path, headers and body.
//! It writes the certificate of the authority that vouches for it to the file AUTHORITY, and then prints where it is.

use std::collections::BTreeMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::serve::Listener;
use clap::Parser;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

#[path = "../tests/support/certificate.rs"]
mod certificate;

use certificate::Certified;

#[derive(Debug, Parser)]
struct Arguments {
    /// Where it listens.
    address: SocketAddr,
    /// Where the certificate of the authority is written, as PEM.
    authority: PathBuf,
}

/// Connections with TLS, one handshake after another.
struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (socket, address) = Listener::accept(&mut self.listener).await;
            match self.acceptor.accept(socket).await {
                Ok(socket) => return (socket, address),
                Err(error) => println!("{}", json!({"path": null, "error": format!("{address}: {error}")})),
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

/// Takes an event.
async fn receive(uri: Uri, headers: HeaderMap, body: String) -> StatusCode {
    let headers: BTreeMap<_, _> =
        headers.iter().map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()))).collect();
    println!("{}", json!({"path": uri.path(), "headers": headers, "body": body}));
    StatusCode::NO_CONTENT
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let Arguments { address, authority } = Arguments::parse();
    let certified = Certified::new(&address.ip().to_string())?;
    std::fs::write(authority, certified.pem())?;
    let listener = TcpListener::bind(address).await?;
    println!("https://{}", listener.local_addr()?);
    let acceptor = TlsAcceptor::from(Arc::new(certified.config));
    axum::serve(TlsListener { listener, acceptor }, Router::new().fallback(receive)).await?;
    Ok(())
}
