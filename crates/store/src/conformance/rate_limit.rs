//! Limits that services state: what one run was told holds for whoever asks the same service.

use std::sync::Arc;

use super::{Checked, Subject, ensure_equal};

pub(super) async fn a_limit_holds_for_every_handle_until_its_time(subject: Arc<dyn Subject>) -> Checked {
    let (store, other) = (subject.store(), subject.reopen());
    ensure_equal!(store.limited_until("a").await?, None);
    let until = store.now().plus_ms(60_000);
    store.limit("a", until).await?;
    for handle in [&store, &other] {
        ensure_equal!(handle.limited_until("a").await?, Some(until));
        ensure_equal!(handle.limited_until("b").await?, None);
    }
    subject.clock().advance_ms(59_999);
    ensure_equal!(other.limited_until("a").await?, Some(until));
    subject.clock().advance_ms(1);
    ensure_equal!(other.limited_until("a").await?, None);
    ensure_equal!(store.limited_until("a").await?, None);
    Ok(())
}

pub(super) async fn of_two_limits_of_a_service_the_later_stands(subject: Arc<dyn Subject>) -> Checked {
    let (store, other) = (subject.store(), subject.reopen());
    let (sooner, later) = (store.now().plus_ms(2_000), store.now().plus_ms(60_000));
    store.limit("a", sooner).await?;
    other.limit("a", later).await?;
    store.limit("a", sooner).await?;
    ensure_equal!(store.limited_until("a").await?, Some(later));
    subject.clock().advance_ms(60_000);
    // One whose time is past is gone, and keeps no shorter one from being said.
    let anew = store.now().plus_ms(1_000);
    store.limit("a", anew).await?;
    ensure_equal!(other.limited_until("a").await?, Some(anew));
    store.limit("b", store.now()).await?;
    ensure_equal!(other.limited_until("b").await?, None);
    Ok(())
}
