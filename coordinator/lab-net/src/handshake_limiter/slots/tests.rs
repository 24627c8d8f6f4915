//! Tests of slots for handshakes and of their queue.

use tokio::time::timeout;

use super::*;

const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

fn other(number: u8) -> IpAddr {
    [10, 0, 0, number].into()
}

fn is_evicted(eviction: &mut HandshakeEviction) -> bool {
    eviction.evicted.try_recv().is_ok()
}

#[tokio::test]
async fn another_network_takes_the_newest_slot_of_the_largest_and_never_its_last() {
    let slots = HandshakeSlots::new(3, 3);
    let mut held = Vec::new();
    for _ in 0..3 {
        held.push(slots.enter(HERE).await.unwrap());
    }
    let (_first, mut first) = slots.enter(other(1)).await.unwrap();
    let lost: Vec<bool> = held
        .iter_mut()
        .map(|(_, eviction)| is_evicted(eviction))
        .collect();
    assert_eq!(lost, [false, false, true]);
    let (_second, mut second) = slots.enter(other(2)).await.unwrap();
    let lost: Vec<bool> = held
        .iter_mut()
        .map(|(_, eviction)| is_evicted(eviction))
        .collect();
    assert_eq!(lost, [false, true, false]);
    let third = timeout(Duration::from_millis(50), slots.enter(other(3))).await;
    assert!(third.is_err(), "it waits, because each network has one slot");
    assert!(!is_evicted(&mut first) && !is_evicted(&mut second));
}

#[tokio::test]
async fn a_full_queue_refuses_the_oldest_of_the_network_with_the_most() {
    let slots = HandshakeSlots::new(1, 2);
    let (slot, _eviction) = slots.enter(HERE).await.unwrap();
    let a_moment = Duration::from_millis(1);
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(slots.enter(HERE))).collect();
    for wait in &mut waiting {
        assert!(timeout(a_moment, wait).await.is_err(), "it waits");
    }
    assert!(waiting.remove(0).await.is_none(), "the third had no room");
    let mut quiet = Box::pin(slots.enter(other(1)));
    assert!(timeout(a_moment, &mut quiet).await.is_err(), "it waits");
    assert!(waiting.remove(0).await.is_none(), "another network has room");
    assert!(slot.free());
    let (last, _) = waiting.remove(0).await.unwrap();
    drop(last);
    let (quiet, _) = quiet.await.unwrap();
    drop(quiet);
    let state = slots.lock();
    assert_eq!((state.running, state.waiting, state.networks.len()), (0, 0, 0));
}

#[tokio::test]
async fn a_slot_is_lost_or_freed_and_never_both() {
    let slots = HandshakeSlots::new(2, 2);
    let (first, _first) = slots.enter(HERE).await.unwrap();
    let (second, _second) = slots.enter(HERE).await.unwrap();
    let (_other, _eviction) = slots.enter(other(1)).await.unwrap();
    assert!(first.free() && !second.free());
}

#[tokio::test]
async fn the_newest_goes_first_once_the_oldest_has_waited_for_long() {
    let slots = HandshakeSlots::new(1, 8);
    let (held, _eviction) = slots.enter(HERE).await.unwrap();
    // Progress, so that nobody takes the slot.
    let progress = Arc::clone(&slots.lock().networks[&HERE].running[0].progress);
    let mut oldest = Box::pin(slots.enter(HERE));
    for _ in 0..12 {
        progress.store(u64::MAX, Ordering::Relaxed);
        assert!(timeout(CHECK, &mut oldest).await.is_err(), "it waits");
    }
    let mut newest = Box::pin(slots.enter(HERE));
    assert!(
        timeout(Duration::from_millis(1), &mut newest).await.is_err(),
        "it waits"
    );
    drop(held);
    let _newest = timeout(Duration::from_millis(1), &mut newest)
        .await
        .unwrap()
        .unwrap();
    assert!(
        timeout(Duration::from_millis(1), &mut oldest).await.is_err(),
        "it waits"
    );
}
