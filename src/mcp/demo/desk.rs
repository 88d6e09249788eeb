//! Tools of the support desk.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::handler::server::wrapper::{Json, Parameters};
use rmcp::model::{Implementation, ProgressNotificationParam, ServerCapabilities, ServerConfig};
use rmcp::schemars::JsonSchema;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler, tool, tool_handler, tool_router};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;

use super::shop::{Customer, Shop};

const QUICK: Duration = Duration::from_millis(100);
const USUAL: Duration = Duration::from_millis(200);
/// The archive is slow; it reports progress after each of three such steps.
const ARCHIVE_STEP: Duration = Duration::from_millis(100);

/// The desk, shared by all requests.
#[derive(Clone)]
pub(super) struct Desk {
    shop: Arc<Mutex<Shop>>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct ByName {
    /// The name or a part of it.
    name: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct ByCustomer {
    /// The customer number, as in `C-1001`.
    customer_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct ByOrder {
    /// The order number, as in `A-1041`.
    #[schemars(regex(pattern = r"^A-[0-9]{4}$"))]
    order_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct NewNote {
    /// The customer number, as in `C-1001`.
    customer_id: String,
    /// What the next colleague should know.
    text: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Found {
    /// Everybody the name fits.
    customers: Vec<Customer>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Loyalty {
    /// The points collected so far.
    points: u32,
    /// What they are worth: `none`, `silver` or `gold`.
    tier: &'static str,
}

#[tool_router]
impl Desk {
    /// A desk with a new shop.
    pub(super) fn open() -> Self {
        Self { shop: Arc::new(Mutex::new(Shop::open())) }
    }

    /// Find customers by name or part of a name.
    #[tool(annotations(title = "Find a customer", read_only_hint = true, open_world_hint = false))]
    async fn find_customer(&self, Parameters(ByName { name }): Parameters<ByName>) -> Json<Found> {
        sleep(USUAL).await;
        let wanted = name.to_lowercase();
        let fits = |customer: &&Customer| customer.name.to_lowercase().contains(&wanted);
        let customers = self.with(|shop| shop.customers.iter().filter(fits).cloned().collect());
        Json(Found { customers })
    }

    /// List a customer's orders with date, status and total.
    #[tool(annotations(title = "List orders", read_only_hint = true, open_world_hint = false))]
    async fn list_orders(
        &self,
        Parameters(ByCustomer { customer_id }): Parameters<ByCustomer>,
    ) -> Result<String, String> {
        sleep(USUAL).await;
        let customer = self.customer(&customer_id)?;
        let orders: Vec<_> = self.with(|shop| {
            let own = shop.orders.iter().filter(|order| order.customer == customer.id);
            own.map(|order| {
                let (id, placed, status) = (order.id, order.placed, order.status);
                json!({"order_id": id, "placed": placed, "status": status, "total_cents": order.total_cents()})
            })
            .collect()
        });
        Ok(json!(orders).to_string())
    }

    /// Look up a customer's loyalty points and tier.
    #[tool(annotations(title = "Loyalty", read_only_hint = true, open_world_hint = false))]
    async fn get_loyalty(
        &self,
        Parameters(ByCustomer { customer_id }): Parameters<ByCustomer>,
    ) -> Result<Json<Loyalty>, String> {
        sleep(QUICK).await;
        let points = self.customer(&customer_id)?.points;
        let tier = match points {
            1000.. => "gold",
            50.. => "silver",
            _ => "none",
        };
        Ok(Json(Loyalty { points, tier }))
    }

    /// Fetch the invoice of an order from the archive.
    #[tool(annotations(title = "Fetch an invoice", read_only_hint = true, open_world_hint = false))]
    async fn get_invoice(
        &self,
        Parameters(ByOrder { order_id }): Parameters<ByOrder>,
        context: RequestContext<RoleServer>,
    ) -> Result<String, String> {
        for (step, doing) in (1u8..).zip(["asking the archive", "fetching the pages", "reading the pages"]) {
            if let Some(token) = context.meta.get_progress_token() {
                let said = ProgressNotificationParam::new(token, step.into()).with_total(3.0).with_message(doing);
                let _ = context.peer.notify_progress(said).await;
            }
            sleep(ARCHIVE_STEP).await;
        }
        let missing = format!("there is no order {order_id}; list the customer's orders to find the right one");
        let order = self.with(|shop| shop.order(&order_id)).ok_or(missing)?;
        let lines = order.lines.iter().map(|(what, cents)| format!("{what}: {cents} cents\n"));
        Ok(format!("Invoice for {}\n{}total: {} cents", order.id, lines.collect::<String>(), order.total_cents()))
    }

    /// Add a note to a customer's file.
    #[tool(annotations(
        title = "Add a note",
        read_only_hint = false,
        destructive_hint = false,
        open_world_hint = false
    ))]
    async fn add_note(&self, Parameters(NewNote { customer_id, text }): Parameters<NewNote>) -> Result<String, String> {
        sleep(QUICK).await;
        let customer = self.customer(&customer_id)?;
        let count = self.with(|shop| {
            let notes = shop.notes.entry(customer.id).or_default();
            notes.push(text);
            notes.len()
        });
        Ok(format!("noted; {} now has {count} note(s)", customer.name))
    }

    fn customer(&self, id: &str) -> Result<&'static Customer, String> {
        self.with(|shop| shop.customer(id))
            .ok_or_else(|| format!("there is no customer {id}; find the customer by name first"))
    }

    fn with<T>(&self, work: impl FnOnce(&mut Shop) -> T) -> T {
        work(&mut self.shop.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[tool_handler]
impl ServerHandler for Desk {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("toolgate-demo-shop", env!("CARGO_PKG_VERSION")))
            .with_instructions("The support desk of a small shop.")
    }
}
