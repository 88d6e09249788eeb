//! Stream tickets.

use std::sync::Arc;

use jiff::Timestamp;
use toolgate::ports::{KeyHash, StreamTicket, TicketedStream};

use super::Store;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn ticket(stream: TicketedStream, expires_at: Timestamp) -> StreamTicket {
    StreamTicket { stream, sealed_credentials: vec![0, 255, 7], expires_at }
}

pub(crate) async fn a_ticket_is_found_by_the_hash_of_its_secret<S: Store>(store: Arc<S>) {
    let streams = [
        TicketedStream::Run("run_1".into()),
        TicketedStream::Session("chat 7".into()),
        TicketedStream::Events,
        TicketedStream::Approvals,
    ];
    for stream in streams {
        let hash = KeyHash::for_secret(&format!("{stream:?}"));
        assert_eq!(store.ticket(&hash).await.unwrap(), None);
        let ticket = ticket(stream, at(160));
        store.put_ticket(&hash, &ticket, at(100)).await.unwrap();
        assert_eq!(store.ticket(&hash).await.unwrap(), Some(ticket));
    }
}

pub(crate) async fn expired_tickets_are_deleted_when_one_is_added<S: Store>(store: Arc<S>) {
    let [first, second, third] = ["a", "b", "c"].map(KeyHash::for_secret);
    store.put_ticket(&first, &ticket(TicketedStream::Events, at(160)), at(100)).await.unwrap();
    store.put_ticket(&second, &ticket(TicketedStream::Events, at(161)), at(100)).await.unwrap();
    store.put_ticket(&third, &ticket(TicketedStream::Events, at(220)), at(160)).await.unwrap();
    assert_eq!(store.ticket(&first).await.unwrap(), None);
    assert!(store.ticket(&second).await.unwrap().is_some() && store.ticket(&third).await.unwrap().is_some());
}
