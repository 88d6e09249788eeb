//! The HTTP gateway over an opened program.

use std::sync::Arc;

use super::App;
use super::surroundings::Adapters;
use crate::gateway::{Caller, Gateway, GatewaySettings};

impl App {
    /// The gateway that the settings describe, over this program's runner.
    pub fn gateway(&self) -> Gateway {
        let written = &self.settings.gateway;
        let settings = GatewaySettings {
            public_url: written.public_url.clone().unwrap_or_default(),
            ..GatewaySettings::default()
        };
        let surroundings = Arc::new(Adapters::of(&self.settings, &self.models, &self.servers));
        let gateway = Gateway::builder(self.runner.clone()).settings(settings).surroundings(surroundings);
        let mut builder = gateway.anonymous(Caller::local());
        if let Some(meter) = self.telemetry.http() {
            builder = builder.measured(meter);
        }
        let gateway = builder.build();
        self.telemetry.watch(&gateway);
        gateway
    }
}
