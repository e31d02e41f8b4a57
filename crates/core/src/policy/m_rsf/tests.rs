use super::*;
use crate::policy::drive::{CLOSED, Drive, OPEN, ms, play, times};

const SLICES: [(&str, &str); 2] = [("q1", "2ms"), ("q2", "2ms")];

#[test]
fn golden_vectors() {
    let closed = play::<MRsf>(&SLICES, CLOSED);
    closed.assert(CLOSED, &[22, 3, 19, 1, 27, 12], 25);
    assert_eq!(closed.first, times(&[7, 1, 5, 0, 9, 3]));
    let spill = play::<MRsf>(&[SLICES.as_slice(), &[("spill", "true")]].concat(), CLOSED);
    spill.assert(CLOSED, &[20, 3, 17, 1, 27, 10], 30);
    assert_eq!(spill.first, times(&[7, 1, 5, 0, 14, 3]));
    play::<MRsf>(&SLICES, OPEN).assert(OPEN, &[16, 10, 20, 7, 9], 5);
}
