//! What a hypervisor's dom0 with Linux is told, in files of its first file system: [`ORDERS`], a
//! [boot text](crate::boot), and [`SCHEDULER`], a word; and which scheduler every dom0 expects to
//! find.

use alloc::format;
use alloc::string::String;

/// What it is to run.
pub const ORDERS: &str = "/etc/anysched/boot";

/// How its tools speak to the scheduler: the [name](TakenFor::name) of one.
pub const SCHEDULER: &str = "/etc/anysched/scheduler";

/// Domains that compute beside those that `ping` measures, if its orders do not say how many.
pub const HOGS: u64 = 2;

/// What a scheduler of Xen's own is called by here: this, and Xen's name of it.
pub const STOCK: &str = "stock-";

/// Xen's number of the scheduler in which policies are.
pub const ANYSCHED: u32 = 4;

/// What Xen's tools call that number.
pub const ANYSCHED_NAME: &str = "sedf";

/// Which of Xen's own schedulers one is, or the tools take the one that runs for.
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

    /// Its number (Xen, public/domctl.h).
    pub fn number(self) -> u32 {
        match self {
            TakenFor::Credit => 5,
            TakenFor::Credit2 => 6,
            TakenFor::Rtds => 8,
            TakenFor::Null => 9,
        }
    }

    /// Whether a vCPU has a pCPU of its own for as long as it is there: one for which none is left
    /// does not run.
    pub fn gives_whole_pcpus(self) -> bool {
        self == TakenFor::Null
    }

    /// Checks that there is a pCPU for each vCPU, where each needs one.
    ///
    /// Errors: there are too few; how many there are, and what to do about it.
    pub fn require_pcpus(self, pcpus: u64, vcpus: u64) -> Result<(), String> {
        if !self.gives_whole_pcpus() || vcpus <= pcpus {
            return Ok(());
        }
        Err(format!(
            "{STOCK}{} gives each vCPU a pCPU of its own, and one without waits for ever: there \
             are {vcpus} vCPUs, dom0's among them, and {pcpus} pCPUs; give the machine {vcpus} \
             CPUs or more, or have fewer domains or vCPUs",
            self.name()
        ))
    }
}

/// Which of Xen's own schedulers `policy` asks for; `None`: one of the policies.
///
/// Errors: Xen has none of that name.
pub fn own(policy: &str) -> Result<Option<TakenFor>, String> {
    let Some(name) = policy.strip_prefix(STOCK) else { return Ok(None) };
    let found = TakenFor::find(name).ok_or_else(|| {
        let all = ALL.map(|one| format!("{STOCK}{}", one.name())).join(", ");
        format!("Xen has no scheduler `{policy}`, but {all}")
    })?;
    Ok(Some(found))
}

/// Checks that Xen runs the scheduler that was asked for: told to run one that it was built
/// without, it takes its default. `number` is the one that it says.
///
/// Errors: it runs another one.
pub fn require_scheduler(policy: &str, number: u32) -> Result<(), String> {
    let wanted = own(policy)?;
    if number == wanted.map_or(ANYSCHED, TakenFor::number) {
        return Ok(());
    }
    let runs = match ALL.into_iter().find(|one| one.number() == number) {
        Some(one) => format!("its own `{}`", one.name()),
        None if number == ANYSCHED => "the one that policies are in".into(),
        None => format!("the one with number {number}"),
    };
    let asked = wanted.map_or("anysched", TakenFor::name);
    Err(format!(
        "Xen was told `sched={asked}` for {policy} and runs {runs}: this hypervisor is built \
         without that scheduler; take one with it (CONFIG_SCHED_{})",
        asked.to_uppercase()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_scheduler_than_was_asked_for_is_an_error() {
        for one in ALL {
            let name = format!("{STOCK}{}", one.name());
            assert_eq!(own(&name), Ok(Some(one)));
            assert_eq!(require_scheduler(&name, one.number()), Ok(()));
            assert!(require_scheduler(&name, ANYSCHED).is_err());
        }
        assert_eq!(require_scheduler("credit2", ANYSCHED), Ok(()));
        let default = TakenFor::Credit2.number();
        let wrong = require_scheduler("stock-null", default).unwrap_err();
        assert!(wrong.contains("`sched=null`") && wrong.contains("its own `credit2`"), "{wrong}");
        let wrong = require_scheduler("credit2", default).unwrap_err();
        assert!(wrong.contains("`sched=anysched`") && wrong.contains("its own"), "{wrong}");
        let unknown = own("stock-sedf").unwrap_err();
        assert!(unknown.contains("stock-credit, stock-credit2"), "{unknown}");
    }

    #[test]
    fn each_vcpu_needs_a_pcpu_where_it_keeps_it() {
        assert_eq!(TakenFor::Null.require_pcpus(3, 3), Ok(()));
        assert_eq!(TakenFor::Credit.require_pcpus(1, 3), Ok(()));
        let wrong = TakenFor::Null.require_pcpus(2, 3).unwrap_err();
        assert!(wrong.contains("3 vCPUs, dom0's among them, and 2 pCPUs"), "{wrong}");
    }

    #[test]
    fn each_is_found_by_its_name() {
        assert!(ALL.into_iter().all(|one| TakenFor::find(one.name()) == Some(one)));
        assert_eq!(TakenFor::find("sedf"), None);
    }
}
