//! Stream tickets in memory, for the lifetime of the process.

use async_trait::async_trait;
use jiff::Timestamp;
use toolgate_ports::{KeyHash, StoreError, StreamTicket, StreamTickets};

use super::MemoryStore;

#[async_trait]
impl StreamTickets for MemoryStore {
    async fn put_ticket(&self, hash: &KeyHash, ticket: &StreamTicket, now: Timestamp) -> Result<(), StoreError> {
        let mut contents = self.contents();
        contents.tickets.retain(|_, ticket| now < ticket.expires_at);
        contents.tickets.insert(*hash, ticket.clone());
        Ok(())
    }

    async fn ticket(&self, hash: &KeyHash) -> Result<Option<StreamTicket>, StoreError> {
        Ok(self.contents().tickets.get(hash).cloned())
    }
}
