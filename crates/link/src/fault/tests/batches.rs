//! Rules that come while a batch is written.

use super::*;

#[test]
fn a_rule_that_comes_in_the_middle_of_a_batch_puts_nothing_out_of_order() {
    let mut bench = Bench::new();
    for (number, datagram) in numbered(0..6).into_iter().enumerate() {
        if number == 3 {
            let select = Select { skip: 100, ..Select::default() };
            bench.switch.add(any(FaultEffect::Lose, select)).unwrap();
        }
        bench.tx.lend(datagram.len()).unwrap();
        bench.tx.lent(0)[..datagram.len()].copy_from_slice(&datagram);
        bench.tx.commit(datagram.len(), PEER).unwrap();
    }
    bench.tx.depart().unwrap();
    assert_eq!(bench.take_sent(), numbered(0..6));
}
