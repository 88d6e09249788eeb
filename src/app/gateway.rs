//! The HTTP gateway over an opened program.

use super::App;
use crate::gateway::{Caller, Gateway, GatewaySettings};

impl App {
    /// The gateway that the settings describe, over this program's runner.
    pub fn gateway(&self) -> Gateway {
        let written = &self.settings.gateway;
        let settings = GatewaySettings {
            public_url: written.public_url.clone().unwrap_or_default(),
            ..GatewaySettings::default()
        };
        let mut builder = Gateway::builder(self.runner.clone()).settings(settings).anonymous(Caller::local());
        if let Some(meter) = self.telemetry.http() {
            builder = builder.measured(meter);
        }
        let gateway = builder.build();
        self.telemetry.watch(&gateway);
        gateway
    }
}
