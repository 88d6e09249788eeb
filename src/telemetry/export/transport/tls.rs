//! TLS certificates for receivers, from the files that the environment names.

use opentelemetry_otlp::tonic_types::transport::{Certificate, ClientTlsConfig, Identity};
use reqwest::ClientBuilder;

use super::super::ExportError;
use super::{NamedFile, TlsFiles};

impl TlsFiles {
    pub(super) fn for_http(&self, mut client: ClientBuilder) -> Result<ClientBuilder, ExportError> {
        if let Some(file) = &self.authority {
            let trusted = reqwest::Certificate::from_pem_bundle(&file.authority()?);
            client = client.tls_certs_only(trusted.unwrap_or_default());
        }
        if let Some((certificate, key)) = &self.client {
            client = client.identity(identity(certificate, key)?);
        }
        Ok(client)
    }

    /// For gRPC.
    pub(super) fn for_grpc(&self) -> Result<ClientTlsConfig, ExportError> {
        let mut tls = match &self.authority {
            Some(file) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(file.authority()?)),
            None => ClientTlsConfig::new().with_enabled_roots(),
        };
        if let Some((certificate, key)) = &self.client {
            identity(certificate, key)?;
            tls = tls.identity(Identity::from_pem(certificate.read()?, key.read()?));
        }
        Ok(tls)
    }
}

fn identity(certificate: &NamedFile, key: &NamedFile) -> Result<reqwest::Identity, ExportError> {
    let both = [key.read()?, certificate.read()?].join(&b'\n');
    reqwest::Identity::from_pem(&both).map_err(|_| key.unusable("cannot be used with the certificate"))
}

impl NamedFile {
    /// PEM with at least one certificate: gRPC accepts any file, and would then trust no certificate.
    fn authority(&self) -> Result<Vec<u8>, ExportError> {
        let pem = self.read()?;
        match reqwest::Certificate::from_pem_bundle(&pem) {
            Ok(trusted) if !trusted.is_empty() => Ok(pem),
            Ok(_) | Err(_) => Err(self.unusable("holds no certificate")),
        }
    }

    fn read(&self) -> Result<Vec<u8>, ExportError> {
        std::fs::read(&self.path).map_err(|error| self.unusable(&format!("cannot be read: {error}")))
    }

    fn unusable(&self, why: &str) -> ExportError {
        ExportError::Certificate { variable: self.variable.clone(), path: self.path.clone(), why: why.to_owned() }
    }
}
