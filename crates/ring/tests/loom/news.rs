//! A receiver that polls only when the change flag is set finds everything: a lost flag would make
//! it poll for ever, which `loom` reports.

use crate::explore;
use loom::sync::Arc;
use loom::thread;
use millstream_ring::ChangeFlag;
use millstream_ring::spsc::{Receiver, channel};

#[test]
fn who_looks_only_at_news_finds_what_everybody_sent() {
    explore(|| {
        let news = Arc::new(ChangeFlag::new());
        let (senders, mut receivers): (Vec<_>, Vec<_>) = (0..2).map(|_| channel(1)).unzip();
        let writers: Vec<_> = senders
            .into_iter()
            .map(|mut sender| {
                let news = news.clone();
                thread::spawn(move || {
                    sender.push(()).unwrap();
                    news.tell();
                })
            })
            .collect();
        let mut taken = 0;
        while taken < 2 {
            if news.is_there() {
                news.take();
                taken += receivers.iter_mut().filter_map(Receiver::pop).count();
            }
            thread::yield_now();
        }
        writers.into_iter().for_each(|writer| writer.join().unwrap());
    });
}
