//! Data of the shop: small, fixed, and the same at every start, so that examples and tests can rely on it.

use std::collections::BTreeMap;

use rmcp::schemars::JsonSchema;
use serde::Serialize;

/// A customer.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
pub(super) struct Customer {
    /// The customer number, as in `C-1001`.
    pub(super) id: &'static str,
    /// The full name.
    pub(super) name: &'static str,
    /// Where to write to.
    pub(super) email: &'static str,
    /// The points collected so far.
    #[serde(skip)]
    pub(super) points: u32,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Order {
    pub(super) id: &'static str,
    #[serde(skip)]
    pub(super) customer: &'static str,
    pub(super) placed: &'static str,
    pub(super) status: &'static str,
    #[serde(skip)]
    pub(super) lines: &'static [(&'static str, u32)],
}

/// The data of the shop. Only the notes change.
#[derive(Debug)]
pub(super) struct Shop {
    pub(super) customers: &'static [Customer],
    pub(super) orders: &'static [Order],
    pub(super) notes: BTreeMap<&'static str, Vec<String>>,
}

const CUSTOMERS: &[Customer] = &[
    Customer { id: "C-1001", name: "Ada Lindqvist", email: "ada@example.com", points: 1280 },
    Customer { id: "C-1002", name: "Bruno Okafor", email: "bruno@example.com", points: 90 },
    Customer { id: "C-1003", name: "Chiara Lindqvist", email: "chiara@example.com", points: 0 },
];

const ORDERS: &[Order] = &[
    Order {
        id: "A-1041",
        customer: "C-1001",
        placed: "2026-09-02",
        status: "delivered",
        lines: &[("espresso machine", 34_900), ("descaler", 1_250)],
    },
    Order { id: "A-1077", customer: "C-1001", placed: "2026-10-30", status: "late", lines: &[("grinder", 18_900)] },
    Order { id: "A-1060", customer: "C-1002", placed: "2026-10-11", status: "returned", lines: &[("kettle", 4_500)] },
];

impl Shop {
    /// The shop with its initial data.
    pub(super) fn open() -> Self {
        Self { customers: CUSTOMERS, orders: ORDERS, notes: BTreeMap::new() }
    }

    /// The customer with that number.
    pub(super) fn customer(&self, id: &str) -> Option<&'static Customer> {
        self.customers.iter().find(|customer| customer.id == id)
    }

    /// The order with that number.
    pub(super) fn order(&self, id: &str) -> Option<&'static Order> {
        self.orders.iter().find(|order| order.id == id)
    }
}

impl Order {
    /// The total price, in cents.
    pub(super) fn total_cents(&self) -> u32 {
        self.lines.iter().map(|(_, cents)| cents).sum()
    }
}
