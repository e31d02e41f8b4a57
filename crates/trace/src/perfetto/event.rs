//! The packet of one event. There are millions of them: one event becomes up to six packets.
//!
//! Only this packet is encoded without `prost`, which writes the buffer position back to memory
//! with each byte and computes lengths twice: `benches/write.rs` took 65 ns a packet. Here it takes
//! 16 ns including everything that leads to it; writing to a file, that is 9 million events a
//! second instead of 3.

/// The longest encoding of a packet. Both lengths in it are below 128, one byte each.
pub const MAX_PACKET: usize = 128;

/// `TrackEvent.Type`.
#[derive(Clone, Copy, Debug, Default)]
pub enum Type {
    #[default]
    SliceBegin = 1,
    SliceEnd = 2,
    Instant = 3,
    Counter = 4,
}

/// `TrackEvent`, with the fields that the writer uses. In numeric fields, zero stands for none:
/// Perfetto numbers names and flows from 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrackEvent {
    pub r#type: Type,
    pub track_uuid: u64,
    pub name_iid: u64,
    pub debug_annotations: [Option<DebugAnnotation>; 2],
    pub counter_value: Option<u64>,
    pub flow_id: u64,
    pub terminating_flow_id: u64,
    pub correlation_id: Option<u64>,
}

/// `DebugAnnotation`: an argument.
#[derive(Clone, Copy, Debug)]
pub struct DebugAnnotation {
    pub name_iid: u64,
    pub value: Value,
}

/// `DebugAnnotation.value`.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    Uint(u64),
    StringIid(u64),
}

/// Fields, encoded one after another.
struct Fields<'a> {
    bytes: &'a mut [u8; MAX_PACKET],
    len: usize,
}

impl Fields<'_> {
    #[inline(always)]
    fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    #[inline(always)]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    #[inline(always)]
    fn uint(&mut self, tag: u64, value: u64) {
        self.varint(tag << 3);
        self.varint(value);
    }

    #[inline(always)]
    fn fixed64(&mut self, tag: u64, value: u64) {
        self.varint(tag << 3 | 1);
        self.bytes[self.len..][..8].copy_from_slice(&value.to_le_bytes());
        self.len += 8;
    }

    /// Writes a message whose fields `fields` writes.
    #[inline(always)]
    fn message(&mut self, tag: u64, fields: impl FnOnce(&mut Self)) {
        self.varint(tag << 3 | 2);
        self.byte(0);
        let start = self.len;
        fields(self);
        self.bytes[start - 1] = (self.len - start) as u8;
    }
}

/// Encodes a `TracePacket` with `event` as a field of `Trace`; returns its length. `timestamp` is
/// in the sequence's clock, `flags` are its `sequence_flags`.
#[inline(always)]
pub fn encode(
    bytes: &mut [u8; MAX_PACKET],
    timestamp: u64,
    sequence: u32,
    flags: u32,
    event: &TrackEvent,
) -> usize {
    let mut trace = Fields { bytes, len: 0 };
    trace.message(1, |packet| {
        packet.uint(8, timestamp);
        packet.uint(10, u64::from(sequence));
        packet.uint(13, u64::from(flags));
        packet.message(11, |fields| track_event(fields, event));
    });
    trace.len
}

#[inline(always)]
fn track_event(fields: &mut Fields<'_>, event: &TrackEvent) {
    fields.uint(9, event.r#type as u64);
    fields.uint(11, event.track_uuid);
    if event.name_iid != 0 {
        fields.uint(10, event.name_iid);
    }
    for annotation in event.debug_annotations.iter().flatten() {
        fields.message(4, |fields| {
            fields.uint(1, annotation.name_iid);
            match annotation.value {
                Value::Uint(value) => fields.uint(3, value),
                Value::StringIid(iid) => fields.uint(17, iid),
            }
        });
    }
    if let Some(value) = event.counter_value {
        fields.uint(30, value);
    }
    if event.flow_id != 0 {
        fields.fixed64(47, event.flow_id);
    }
    if event.terminating_flow_id != 0 {
        fields.fixed64(48, event.terminating_flow_id);
    }
    if let Some(id) = event.correlation_id {
        fields.uint(52, id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_packet_fits() {
        let annotation = DebugAnnotation { name_iid: 4, value: Value::Uint(u64::MAX) };
        let event = TrackEvent {
            r#type: Type::Counter,
            track_uuid: u64::MAX,
            name_iid: u64::MAX,
            debug_annotations: [Some(annotation); 2],
            counter_value: Some(u64::MAX),
            flow_id: u64::MAX,
            terminating_flow_id: u64::MAX,
            correlation_id: Some(u64::MAX),
        };
        let mut bytes = [0; MAX_PACKET];
        let length = encode(&mut bytes, u64::MAX, 1, 2, &event);
        assert_eq!(usize::from(bytes[1]), length - 2);
        assert!(bytes[1] < 0x80);
    }
}
