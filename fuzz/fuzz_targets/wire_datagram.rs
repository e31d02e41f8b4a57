//! Datagrams: what is read and written again reads the same.

#![no_main]

use libfuzzer_sys::fuzz_target;

use anysched_wire::datagram::{Datagram, LONGEST};

fuzz_target!(|data: &[u8]| {
    if let Some(datagram) = Datagram::decode(data) {
        let mut bytes = [0; LONGEST];
        let length = datagram.encode(&mut bytes);
        assert!(length <= data.len());
        assert_eq!(Datagram::decode(&bytes[..length]), Some(datagram));
    }
});
