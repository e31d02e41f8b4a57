//! Named items that QEMU hands to a kernel: `-fw_cfg name=NAME,file=FILE`.
//!
//! Source: QEMU 7.2, docs/specs/fw_cfg.txt (the port interface).

use alloc::vec::Vec;

/// The port by which an item is selected, two bytes wide.
pub const SELECTOR: u16 = 0x510;
/// The port that gives the bytes of the selected item, one after the other.
pub const DATA: u16 = 0x511;

/// The item that says which device this is.
const SIGNATURE: u16 = 0x00;
/// The item that lists all items that have names.
const DIRECTORY: u16 = 0x19;

/// The device's two ports.
pub trait Ports {
    /// Writes to [`SELECTOR`]. This changes nothing but what [`byte`](Ports::byte) gives next.
    fn select(&mut self, item: u16);

    /// Reads from [`DATA`]. Past an item's end it gives zeros.
    fn byte(&mut self) -> u8;
}

/// The item called `name`, or `None` if the host gave none. Nobody else may use the device
/// meanwhile.
pub fn read(ports: &mut impl Ports, name: &str) -> Option<Vec<u8>> {
    let (item, size) = find(ports, name)?;
    ports.select(item);
    Some((0..size).map(|_| ports.byte()).collect())
}

/// The number and the size of the item called `name`.
fn find(ports: &mut impl Ports, name: &str) -> Option<(u16, u32)> {
    ports.select(SIGNATURE);
    if &bytes(ports) != b"QEMU" {
        return None;
    }
    ports.select(DIRECTORY);
    let count = u32::from_be_bytes(bytes(ports));
    let mut found = None;
    for _ in 0..count {
        let size = u32::from_be_bytes(bytes(ports));
        let item = u16::from_be_bytes(bytes(ports));
        let _reserved: [u8; 2] = bytes(ports);
        let field: [u8; 56] = bytes(ports);
        let end = field.iter().position(|&byte| byte == 0).unwrap_or(field.len());
        if &field[..end] == name.as_bytes() {
            found = Some((item, size));
        }
    }
    found
}

fn bytes<const N: usize>(ports: &mut impl Ports) -> [u8; N] {
    core::array::from_fn(|_| ports.byte())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// A device with these items, from number 32 on.
    struct Device {
        signature: &'static [u8],
        items: Vec<(&'static str, &'static [u8])>,
        selected: Vec<u8>,
    }

    impl Ports for Device {
        fn select(&mut self, item: u16) {
            let mut bytes = match item {
                SIGNATURE => self.signature.to_vec(),
                DIRECTORY => {
                    let mut list = (self.items.len() as u32).to_be_bytes().to_vec();
                    for (number, (name, contents)) in (32u16..).zip(&self.items) {
                        list.extend((contents.len() as u32).to_be_bytes());
                        list.extend(number.to_be_bytes());
                        list.extend([0, 0]);
                        let mut field = name.as_bytes().to_vec();
                        field.resize(56, 0);
                        list.extend(field);
                    }
                    list
                }
                item => self.items[usize::from(item) - 32].1.to_vec(),
            };
            bytes.reverse();
            self.selected = bytes;
        }

        fn byte(&mut self) -> u8 {
            self.selected.pop().unwrap_or(0)
        }
    }

    #[test]
    fn items_are_found_by_name() {
        let items: Vec<(&str, &[u8])> = vec![("etc/e820", b"xyz"), ("opt/a", b"\0one\n")];
        let mut device = Device { signature: b"QEMU", items, selected: Vec::new() };
        assert_eq!(read(&mut device, "opt/a").as_deref(), Some(&b"\0one\n"[..]));
        assert_eq!(read(&mut device, "etc/e820").as_deref(), Some(&b"xyz"[..]));
        assert_eq!(read(&mut device, "opt/"), None);
    }

    #[test]
    fn another_device_has_no_items() {
        let items: Vec<(&str, &[u8])> = vec![("opt/a", b"one")];
        let mut device = Device { signature: b"\xff\xff\xff\xff", items, selected: Vec::new() };
        assert_eq!(read(&mut device, "opt/a"), None);
    }
}
