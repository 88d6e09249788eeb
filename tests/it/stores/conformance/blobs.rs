//! Blobs: content outside the journals.

use std::sync::Arc;

use toolgate::core::blob::{Blob, BlobHandle};
use toolgate::ports::{BlobError, BlobInfo, MAX_BLOB_BYTES};

use super::Store;
use crate::stores::journals::run;

fn picture(bytes: impl Into<Vec<u8>>) -> Blob {
    Blob::new("image/png", bytes.into())
}

pub(crate) async fn a_blob_is_read_exactly_as_written<S: Store>(store: Arc<S>) {
    for bytes in [Vec::new(), vec![0], (0..=255).cycle().take(1_000_003).collect::<Vec<u8>>()] {
        let handle = store.put(&run(1), picture(bytes.clone())).await.unwrap();
        assert_eq!(handle, BlobHandle::for_bytes(&bytes));
        assert_eq!(store.get(&handle).await.unwrap(), Some(picture(bytes.clone())));
        let info = BlobInfo { media_type: "image/png".into(), size: bytes.len() as u64 };
        assert_eq!(store.describe(&handle).await.unwrap(), Some(info));
    }
}

pub(crate) async fn the_same_bytes_are_one_blob_under_their_first_type<S: Store>(store: Arc<S>) {
    let first = store.put(&run(1), picture("same")).await.unwrap();
    let again = store.put(&run(1), picture("same")).await.unwrap();
    let elsewhere = store.put(&run(2), Blob::new("text/plain", b"same".to_vec())).await.unwrap();
    assert_eq!((first, first), (again, elsewhere));
    assert_eq!(store.get(&first).await.unwrap(), Some(picture("same")));
}

pub(crate) async fn an_unknown_blob_is_not_found<S: Store>(store: Arc<S>) {
    store.put(&run(1), picture("something")).await.unwrap();
    let handle = BlobHandle::for_bytes(b"nothing");
    assert_eq!(store.get(&handle).await.unwrap(), None);
    assert_eq!(store.describe(&handle).await.unwrap(), None);
}

pub(crate) async fn a_blob_of_the_maximum_size_is_stored_a_larger_one_rejected<S: Store>(store: Arc<S>) {
    let handle = store.put(&run(1), picture(vec![7; MAX_BLOB_BYTES])).await.unwrap();
    assert_eq!(store.describe(&handle).await.unwrap().unwrap().size, MAX_BLOB_BYTES as u64);
    let refused = store.put(&run(1), picture(vec![7; MAX_BLOB_BYTES + 1])).await.unwrap_err();
    assert_eq!(refused, BlobError::TooLarge { size: MAX_BLOB_BYTES + 1 });
    assert_eq!(refused.to_string(), "67108865 bytes are too many to be kept; the limit is 64 MiB");
}

pub(crate) async fn concurrent_puts_of_the_same_bytes_all_succeed<S: Store>(store: Arc<S>) {
    let puts = (0..20).map(|number| {
        let store = store.clone();
        tokio::spawn(async move { store.put(&run(number), picture("same")).await })
    });
    for put in puts.collect::<Vec<_>>() {
        assert_eq!(put.await.unwrap(), Ok(BlobHandle::for_bytes(b"same")));
    }
}

pub(crate) async fn a_store_is_its_own_blob_store<S: Store>(store: Arc<S>) {
    let handle = store.put(&run(1), picture("something")).await.unwrap();
    let blobs = store.blobs().expect("it keeps blobs");
    assert_eq!(blobs.get(&handle).await.unwrap(), Some(picture("something")));
}
