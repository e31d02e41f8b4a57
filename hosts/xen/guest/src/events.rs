//! Event channels.

use crate::hypercall::{Answer, Call, at, hypercall};
use crate::shared;

const BIND_INTERDOMAIN: u64 = 0;
const BIND_VIRQ: u64 = 1;
const SEND: u64 = 4;
const ALLOC_UNBOUND: u64 = 6;
const BIND_IPI: u64 = 7;

/// This domain, in calls.
const SELF: u16 = 0x7ff0;

/// A port of this domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port(pub u32);

impl Port {
    /// A port that another domain may bind to. Of a new domain, the first has number 1.
    pub fn for_domain(remote: u16) -> Result<Port, crate::hypercall::Errno> {
        #[repr(C)]
        struct Alloc {
            domain: u16,
            remote: u16,
            port: u32,
        }
        let mut alloc = Alloc { domain: SELF, remote, port: 0 };
        // SAFETY: it takes this structure.
        unsafe { hypercall(Call::EventChannel, [ALLOC_UNBOUND, at(&mut alloc), 0, 0]) }?;
        Ok(Port(alloc.port))
    }

    /// A port bound to that of another domain.
    pub fn bound_to(remote: u16, port: u32) -> Result<Port, crate::hypercall::Errno> {
        #[repr(C)]
        struct Bind {
            remote: u16,
            port: u32,
            local: u32,
        }
        let mut bind = Bind { remote, port, local: 0 };
        // SAFETY: it takes this structure.
        unsafe { hypercall(Call::EventChannel, [BIND_INTERDOMAIN, at(&mut bind), 0, 0]) }?;
        let port = Port(bind.local);
        // Binding sets it pending, which is no message.
        port.take();
        Ok(port)
    }

    /// A port by which a vCPU of this domain is called.
    pub fn of_vcpu(vcpu: usize) -> Result<Port, crate::hypercall::Errno> {
        #[repr(C)]
        struct Bind {
            vcpu: u32,
            port: u32,
        }
        let mut bind = Bind { vcpu: vcpu as u32, port: 0 };
        // SAFETY: it takes this structure.
        unsafe { hypercall(Call::EventChannel, [BIND_IPI, at(&mut bind), 0, 0]) }?;
        Ok(Port(bind.port))
    }

    /// A port of dom0 that is pending when a domain has shut down.
    pub fn of_deaths() -> Result<Port, crate::hypercall::Errno> {
        const DOMAIN_EXCEPTION: u32 = 3;
        Port::of_xen(DOMAIN_EXCEPTION)
    }

    /// A port of dom0 that is pending when a trace buffer of Xen's is half full.
    pub fn of_records() -> Result<Port, crate::hypercall::Errno> {
        const TRACE_BUFFER: u32 = 4;
        Port::of_xen(TRACE_BUFFER)
    }

    /// A port of dom0 that is pending when something of this kind has happened.
    fn of_xen(interrupt: u32) -> Result<Port, crate::hypercall::Errno> {
        #[repr(C)]
        struct Bind {
            interrupt: u32,
            vcpu: u32,
            port: u32,
        }
        let mut bind = Bind { interrupt, vcpu: 0, port: 0 };
        // SAFETY: it takes this structure.
        unsafe { hypercall(Call::EventChannel, [BIND_VIRQ, at(&mut bind), 0, 0]) }?;
        Ok(Port(bind.port))
    }

    /// Sends an event to the other end.
    pub fn send(self) -> Answer {
        let mut port = self.0;
        // SAFETY: it takes a port.
        unsafe { hypercall(Call::EventChannel, [SEND, at(&mut port), 0, 0]) }
    }

    /// Whether there was an event; it is left there.
    pub fn is_pending(self) -> bool {
        shared::is_pending(self.0)
    }

    /// Whether there was an event; it is taken.
    pub fn take(self) -> bool {
        shared::take_pending(self.0)
    }
}
