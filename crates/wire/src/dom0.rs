//! What a hypervisor's dom0 with Linux is told, in files of its first file system: [`ORDERS`], a
//! [boot text](crate::boot), and [`SCHEDULER`], a word.

/// What it is to run.
pub const ORDERS: &str = "/etc/anysched/boot";

/// How its tools speak to the scheduler: the [name](TakenFor::name) of one.
pub const SCHEDULER: &str = "/etc/anysched/scheduler";

/// Domains that compute beside those that `ping` measures, if its orders do not say how many.
pub const HOGS: u64 = 2;

/// Which of Xen's own schedulers the tools take the one that runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakenFor {
    /// Domains have weights and caps.
    Credit,
    /// As Credit, by other calls.
    Credit2,
    /// vCPUs have periods and budgets.
    Rtds,
    /// Domains have nothing that could be set.
    Null,
}

/// All of them.
const ALL: [TakenFor; 4] = [TakenFor::Credit, TakenFor::Credit2, TakenFor::Rtds, TakenFor::Null];

impl TakenFor {
    /// The one that Xen calls `name`.
    pub fn find(name: &str) -> Option<TakenFor> {
        ALL.into_iter().find(|one| one.name() == name)
    }

    /// What Xen calls it.
    pub fn name(self) -> &'static str {
        match self {
            TakenFor::Credit => "credit",
            TakenFor::Credit2 => "credit2",
            TakenFor::Rtds => "rtds",
            TakenFor::Null => "null",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_by_its_name() {
        assert!(ALL.into_iter().all(|one| TakenFor::find(one.name()) == Some(one)));
        assert_eq!(TakenFor::find("sedf"), None);
    }
}
