//! The division of capacity between tenants: what each one holds, demands and is entitled to. It is made once per pass,
//! follows what the pass gives away, and is asked wherever a pass gives capacity away.
//!
//! - A tenant's *share* is weighted max-min over the tenants' demands ([`filling`]), at least its part by weight.
//! - First attempts are served in two phases: within the shares, then what is left, which is lent.
//! - While others borrow, a part of what a tenant has used lately is kept for it ([`Shares::leaves_enough`]).
//! - Lent capacity returns as slots come free, then by lent clones, then by attempts that may be preempted.
//!
//! A tenant that is alone gets all capacity, and no decision asks for its share. Nor does one while no tenant has a
//! weight: shares cost deadlines, so administrators choose them.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::capacity::{Amounts, Capacity, add};
use crate::ids::Tenant;
use crate::memory::{TenantRecord, TenantUse};
use crate::round::JobView;
use crate::snapshot::Snapshot;
use crate::time::Instant;

mod account;
mod filling;
mod outside;
mod owed;

use account::Account;
use outside::OUTSIDE;

/// Fractions of the usable capacity, in the order of [`Amounts`].
type Fractions = SmallVec<[f64; 4]>;

/// The part of others' unused shares that attempts may hold which cannot be taken back.
const LENDABLE: f64 = 0.5;

/// Tolerance of a sum of shares.
const ROUNDING: f64 = 1e-9;

/// The share of the capacity that is taken back from running attempts within a minute.
const TAKEN_BACK_PER_MINUTE: f64 = 0.05;

/// The phases in which first attempts are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Phase {
    /// Each tenant gets its share.
    #[default]
    Own,
    /// Tenants borrow what is left.
    Lent,
}

/// The accounts of all tenants in one pass.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// Ascending by tenant.
    accounts: Vec<Account>,
    /// The account of each job, by position. [`OUTSIDE`] for jobs whose share is that of a quota outside shed.
    of_job: Vec<usize>,
    /// The usable capacity.
    usable: Fractions,
    /// What is kept for all tenants while others borrow, as fractions of the usable capacity.
    kept: Fractions,
    /// What lent attempts hold that can be taken back.
    returnable: Fractions,
    /// The share of the capacity that may still be taken back from running attempts.
    may_take_back: f64,
    pub(crate) phase: Phase,
    /// Whether tenants divide the capacity: an administrator has given one of them a weight.
    is_divided: bool,
    /// Whether first attempts have been served.
    pub(crate) is_served: bool,
    /// Seconds since the last pass.
    elapsed: f64,
    /// What is left of an earlier use after that time.
    decay: f64,
    /// The part of the capacity that tenants divide: the rest is that of quotas outside shed.
    divided: f64,
    /// What the pass has taken back.
    taken_back: f64,
}

impl Shares {
    /// The accounts before the plan.
    pub(crate) fn of(
        snapshot: &Snapshot,
        jobs: &[JobView<'_>],
        capacity: &Capacity,
        past: &TenantUse,
    ) -> Self {
        let now = snapshot.now;
        let usable = capacity.usable_amounts();
        let mut shares = Self {
            usable: usable.iter().map(|&amount| amount as f64).collect(),
            kept: usable.iter().map(|_| 0.0).collect(),
            returnable: usable.iter().map(|_| 0.0).collect(),
            elapsed: past.elapsed(now),
            decay: past.decay(now),
            is_divided: !snapshot.weights.is_empty(),
            ..Self::default()
        };
        shares.divided = outside::left_by_quotas(&shares.usable, snapshot, (jobs, capacity));
        shares.open(snapshot, jobs, past);
        for (position, state) in jobs.iter().enumerate() {
            shares.count(snapshot, capacity, (position, state));
        }
        for &position in &capacity.surging {
            shares.count_surging(capacity, position);
        }
        shares.weigh();
        let minutes = shares.elapsed / 60.0;
        shares.taken_back = (past.taken_back - TAKEN_BACK_PER_MINUTE * minutes).max(0.0);
        shares.may_take_back = TAKEN_BACK_PER_MINUTE - shares.taken_back;
        shares
    }

    /// Opens an account for each tenant that has jobs, or has demanded or held anything within the last hour.
    fn open(&mut self, snapshot: &Snapshot, jobs: &[JobView<'_>], past: &TenantUse) {
        let mut found: BTreeMap<&Tenant, usize> = BTreeMap::new();
        let mut last: Option<(&Tenant, usize)> = None;
        for state in jobs {
            if state.job.admitted.is_some() {
                self.of_job.push(OUTSIDE);
                continue;
            }
            let tenant = &state.job.tenant;
            let at = match last.filter(|(last, _)| *last == tenant) {
                Some((_, at)) => at,
                None => {
                    let next = found.len();
                    *found.entry(tenant).or_insert(next)
                }
            };
            last = Some((tenant, at));
            self.of_job.push(at);
        }
        let recent: BTreeMap<&Tenant, TenantRecord> = past.recent(snapshot.now).collect();
        for tenant in recent.keys() {
            let next = found.len();
            found.entry(tenant).or_insert(next);
        }
        // The accounts are in the order of tenants, because a job's position in the snapshot does not matter.
        let mut places = vec![0; found.len()];
        for (place, (tenant, at)) in found.into_iter().enumerate() {
            if let Some(slot) = places.get_mut(at) {
                *slot = place;
            }
            let weight = snapshot.weights.get(tenant).copied().unwrap_or(1.0);
            let mut account = Account::new(tenant, weight, self.usable.len());
            if let Some(record) = recent.get(tenant) {
                account.record = *record;
            }
            self.accounts.push(account);
        }
        for at in &mut self.of_job {
            *at = places.get(*at).copied().unwrap_or(OUTSIDE);
        }
    }

    /// Adds what a job holds and demands.
    fn count(
        &mut self,
        snapshot: &Snapshot,
        capacity: &Capacity,
        (position, state): (usize, &JobView<'_>),
    ) {
        let share = capacity.dominant_share(position);
        let demand = capacity.demands.get(position);
        let at = self.of_job.get(position);
        let account = at.and_then(|&at| self.accounts.get_mut(at));
        let (Some(account), Some(demand)) = (account, demand.filter(|_| share.is_finite())) else {
            return;
        };
        let holdings = state.holdings;
        add(&mut account.held, demand, holdings.all as i64);
        add(&mut account.returnable, demand, holdings.returnable as i64);
        let waits = match state.may_launch(snapshot.now) && !state.job.eligible_nodes.is_empty() {
            true => state.launchable_now(),
            false => 0,
        };
        add(
            &mut account.demand,
            demand,
            i64::from(waits) + holdings.all as i64,
        );
        if waits > 0 {
            account.least_waiting = account.least_waiting.min(share);
        }
        if waits > 0 || holdings.all > 0 {
            account.record.seen = snapshot.now;
        }
    }

    /// A pod that waits for the cluster to grow holds nothing yet.
    fn count_surging(&mut self, capacity: &Capacity, position: usize) {
        let share = capacity.dominant_share(position);
        let account = self.of_job.get(position);
        let account = account.and_then(|&at| self.accounts.get_mut(at));
        if let (Some(account), Some(demand)) = (account, capacity.demands.get(position))
            && share.is_finite()
        {
            add(&mut account.held, demand, -1);
            account.least_waiting = account.least_waiting.min(share);
        }
    }

    /// Finds the shares, and what is kept.
    fn weigh(&mut self) {
        let weights: f64 = self.accounts.iter().map(|account| account.part).sum();
        let mut demands = Vec::with_capacity(self.accounts.len());
        for account in &self.accounts {
            let mut fractions = fractions(&self.usable, &account.demand);
            for fraction in &mut fractions {
                *fraction /= self.divided;
            }
            let weight = account.part;
            demands.push(filling::Demand { fractions, weight });
        }
        let entitled = filling::entitled(&demands);
        for (account, entitled) in self.accounts.iter_mut().zip(entitled) {
            account.part = account.part / weights * self.divided;
            account.entitled = entitled * self.divided;
            account.taken = account.held.clone();
            account.before = dominant(&self.usable, &account.held);
            account.record.used += account.before * (1.0 - self.decay);
            let lent = account.before - account.part;
            let back = dominant(&self.usable, &account.returnable);
            if lent > ROUNDING && back > 0.0 {
                let part = (lent / back).min(1.0);
                let returnable = fractions(&self.usable, &account.returnable);
                for (sum, fraction) in self.returnable.iter_mut().zip(returnable) {
                    *sum += part * fraction;
                }
            }
        }
        if self.divides() {
            (0..self.accounts.len()).for_each(|at| self.keep(at));
        }
    }

    /// Whether several tenants divide the capacity.
    pub(crate) fn divides(&self) -> bool {
        self.is_divided && self.accounts.len() > 1
    }

    fn account(&self, position: usize) -> Option<&Account> {
        self.accounts.get(*self.of_job.get(position)?)
    }

    /// The job's tenant, as a number.
    pub(crate) fn number(&self, position: usize) -> usize {
        self.of_job.get(position).copied().unwrap_or(0)
    }

    /// The number of tenants.
    pub(crate) fn tenants(&self) -> usize {
        self.accounts.len()
    }

    /// The share of the job's tenant: 1 if it is alone.
    pub(crate) fn share(&self, position: usize) -> f64 {
        let account = self.account(position).filter(|_| self.divides());
        account.map_or(1.0, Account::share)
    }

    /// How many attempts of the job can run at a time on its tenant's part by weight, which does not depend on what
    /// others demand; `width` run with the plan, and `more` could. It is `width` if the tenant is alone.
    pub(crate) fn width(
        &self,
        capacity: &Capacity,
        position: usize,
        (width, more): (u32, u32),
    ) -> u32 {
        let Some(account) = self.account(position).filter(|_| self.divides()) else {
            return width;
        };
        let held = dominant(&self.usable, &account.held);
        if held > account.part {
            return ((f64::from(width) * account.part / held) as u32).max(width.min(1));
        }
        let left = (account.part - held + ROUNDING) / capacity.dominant_share(position);
        width.saturating_add(more.min(left as u32))
    }

    /// How many attempts of the job its tenant's part by weight holds, at least one.
    pub(crate) fn width_max(&self, capacity: &Capacity, position: usize) -> u32 {
        let account = self.account(position).filter(|_| self.divides());
        account.map_or(u32::MAX, |account| {
            let width = (account.part + ROUNDING) / capacity.dominant_share(position);
            (width as u32).max(1)
        })
    }

    /// The share that the job's tenant may still take as its own, beyond what it holds and what is reserved for it.
    pub(crate) fn own_left(&self, position: usize) -> f64 {
        let account = self.account(position);
        account.map_or(0.0, |account| {
            account.share() - dominant(&self.usable, &account.taken) + ROUNDING
        })
    }

    /// Recomputes what is kept for a tenant while others borrow: a part of what it has used on average
    /// lately and does not hold.
    fn keep(&mut self, at: usize) {
        let Some(account) = self.accounts.get_mut(at) else {
            return;
        };
        let taken = dominant(&self.usable, &account.taken);
        let unused = (account.part.min(account.record.used) - taken).max(0.0);
        let kept = (1.0 - LENDABLE) * unused;
        let more = kept - account.kept;
        account.kept = kept;
        if more != 0.0 {
            let direction = direction(&self.usable, account);
            for (sum, fraction) in self.kept.iter_mut().zip(direction) {
                *sum += more * fraction;
            }
        }
    }

    /// Whether one more first attempt or retry of the job may be launched in this phase.
    pub(crate) fn may_launch(&self, capacity: &Capacity, position: usize) -> bool {
        self.may_take(capacity, position, |account| &account.held)
    }

    /// Whether capacity may be reserved for one more of them in this phase.
    pub(crate) fn may_reserve(&self, capacity: &Capacity, position: usize) -> bool {
        self.may_take(capacity, position, |account| &account.taken)
    }

    fn may_take(
        &self,
        capacity: &Capacity,
        position: usize,
        taken: impl Fn(&Account) -> &Amounts,
    ) -> bool {
        if !self.divides() {
            return true;
        }
        let Some((account, after)) = self.after_one_more(capacity, position, taken) else {
            return true;
        };
        let is_allowed = match self.phase {
            Phase::Own => after <= account.share() + ROUNDING,
            // A tenant without attempts may always have one.
            Phase::Lent if account.holds_none() => return true,
            Phase::Lent => true,
        };
        let is_part = after <= account.part + ROUNDING;
        is_allowed && (is_part || self.leaves_enough(capacity, (position, account)))
    }

    /// Whether the tenant has no attempt.
    pub(crate) fn is_first(&self, position: usize) -> bool {
        self.account(position).is_some_and(Account::holds_none)
    }

    /// Whether the job's tenant is within its share with one more attempt of the job.
    pub(crate) fn is_own(&self, capacity: &Capacity, position: usize) -> bool {
        let more = self.after_one_more(capacity, position, |account| &account.taken);
        let more = more.filter(|_| self.divides());
        more.is_none_or(|(account, after)| after <= account.share() + ROUNDING)
    }

    /// The job's tenant, and the dominant share that it would take with one more attempt.
    fn after_one_more(
        &self,
        capacity: &Capacity,
        position: usize,
        taken: impl Fn(&Account) -> &Amounts,
    ) -> Option<(&Account, f64)> {
        let (account, demand) = (self.account(position)?, capacity.demands.get(position)?);
        let sums = taken(account).iter().zip(demand).zip(&self.usable);
        let shares = sums.map(|((&taken, &demand), &usable)| ratio(taken + demand, usable));
        Some((account, shares.fold(0.0, f64::max)))
    }

    /// Whether one more attempt of the job leaves what is kept for other tenants. Lent attempts that can be taken back
    /// count as if they were free.
    fn leaves_enough(&self, capacity: &Capacity, (position, account): (usize, &Account)) -> bool {
        let Some(demand) = capacity.demands.get(position) else {
            return true;
        };
        let direction = direction(&self.usable, account);
        let free = capacity.free_after_kills.total().iter().zip(demand);
        let limits = self.kept.iter().zip(&self.returnable).zip(direction);
        let mut all = free.zip(&self.usable).zip(limits);
        all.all(|(((&free, &demand), &usable), ((kept, returnable), own))| {
            let kept = kept - own * account.kept;
            let left = ratio(free - demand, usable) + returnable;
            demand <= 0 || kept <= ROUNDING || left + ROUNDING >= kept
        })
    }

    /// Whether the job may get a clone now. Clones beyond a tenant's share come after the first attempts of tenants
    /// that are below theirs.
    pub(crate) fn may_clone(&self, capacity: &Capacity, position: usize) -> bool {
        if !self.divides() || self.is_served || self.is_own(capacity, position) {
            return true;
        }
        let mine = self.number(position);
        let accounts = self.accounts.iter().enumerate();
        let mut others = accounts.filter(|(at, _)| *at != mine);
        !others.any(|(_, account)| self.is_below(account))
    }

    /// Whether the tenant waits for a part of its share.
    fn is_below(&self, account: &Account) -> bool {
        let held = dominant(&self.usable, &account.held);
        held + account.least_waiting <= account.entitled + ROUNDING
    }

    /// Whether the tenants of these jobs differ.
    pub(crate) fn are_apart(&self, one: usize, other: usize) -> bool {
        self.number(one) != self.number(other)
    }

    /// Whether an attempt of the job holds lent capacity, after the stops of the plan.
    pub(crate) fn is_lent(&self, position: usize) -> bool {
        let account = self.account(position).filter(|_| self.divides());
        account.is_some_and(|account| {
            let sums = account.held.iter().zip(&account.leaving).zip(&self.usable);
            let left = sums.map(|((held, leaving), &usable)| ratio(held - leaving, usable));
            left.fold(0.0, f64::max) > account.share() + ROUNDING
        })
    }

    /// Whether a waiting attempt of one job may take the slot of a running attempt of another one: within a tenant, or if
    /// the waiting attempt is within its tenant's share and the running one is lent, or is of a tenant with less credit.
    pub(crate) fn may_displace(&self, capacity: &Capacity, waiter: usize, victim: usize) -> bool {
        if !self.are_apart(waiter, victim) {
            return true;
        }
        let has_credit = || self.credit(waiter) > self.credit(victim).max(0.0);
        self.is_own(capacity, waiter) && (self.is_lent(victim) || has_credit())
    }

    /// The job's tenant pays for a slot of another one, besides the launch.
    pub(crate) fn charge(&mut self, capacity: &Capacity, position: usize, seconds: f64) {
        let (at, share) = (self.number(position), capacity.dominant_share(position));
        if let Some(account) = self.accounts.get_mut(at).filter(|_| share.is_finite()) {
            account.expected += share * seconds;
        }
    }

    /// Whether a tenant waits for a part of its share that others hold.
    pub(crate) fn owes(&self) -> bool {
        self.divides() && self.lends() && self.accounts.iter().any(|it| self.is_below(it))
    }

    /// Whether this share may be taken back from running attempts now. At most one attempt exceeds the rate.
    pub(crate) fn may_take_back(&self, share: f64) -> bool {
        let is_first = self.may_take_back >= TAKEN_BACK_PER_MINUTE - ROUNDING;
        self.divides() && (is_first || share <= self.may_take_back + ROUNDING)
    }

    /// This share is taken back from running attempts.
    pub(crate) fn take_back(&mut self, share: f64) {
        self.may_take_back -= share;
        self.taken_back += share;
    }

    /// An attempt of the job is launched. `seconds`: the least and the expected time that it holds its slot.
    pub(crate) fn launch(&mut self, capacity: &Capacity, position: usize, seconds: [f64; 2]) {
        let share = capacity.dominant_share(position);
        let demand = capacity.demands.get(position).filter(|_| share.is_finite());
        let (at, Some(demand)) = (self.number(position), demand) else {
            return;
        };
        if let Some(account) = self.accounts.get_mut(at) {
            add(&mut account.held, demand, 1);
            add(&mut account.taken, demand, 1);
            account.charged += share * seconds[0];
            account.expected += share * seconds[1].max(seconds[0]);
            if account.kept > 0.0 {
                self.keep(at);
            }
        }
    }

    /// Capacity is reserved for a waiting attempt of the job.
    pub(crate) fn reserve(&mut self, capacity: &Capacity, position: usize) {
        let (at, demand) = (self.number(position), capacity.demands.get(position));
        if let (Some(account), Some(demand)) = (self.accounts.get_mut(at), demand) {
            add(&mut account.taken, demand, 1);
        }
    }

    /// An attempt of the job is stopped.
    pub(crate) fn stop(&mut self, capacity: &Capacity, position: usize) {
        let (at, demand) = (self.number(position), capacity.demands.get(position));
        if let (Some(account), Some(demand)) = (self.accounts.get_mut(at), demand) {
            add(&mut account.leaving, demand, 1);
        }
    }

    /// The credit of the job's tenant, after the launches of the plan.
    pub(crate) fn credit(&self, position: usize) -> f64 {
        let account = self.account(position);
        account.map_or(0.0, |account| account.record.credit - account.expected)
    }

    /// What the next passes need of this one.
    pub(crate) fn records(self, now: Instant) -> TenantUse {
        let elapsed = self.elapsed;
        let kept = |account: Account| {
            let earned = (account.part - account.before) * elapsed;
            let record = TenantRecord {
                seen: account.record.seen,
                used: account.record.used,
                credit: account.record.credit + earned - account.charged,
            };
            (account.tenant, record)
        };
        TenantUse::new(now, self.taken_back, self.accounts.into_iter().map(kept))
    }
}

fn ratio(amount: i64, usable: f64) -> f64 {
    match amount {
        0 => 0.0,
        amount => amount as f64 / usable.max(0.0),
    }
}

fn fractions(usable: &[f64], amounts: &[i64]) -> Fractions {
    let amounts = amounts.iter().zip(usable);
    amounts
        .map(|(&amount, &usable)| ratio(amount, usable))
        .collect()
}

fn dominant(usable: &[f64], amounts: &[i64]) -> f64 {
    let amounts = amounts.iter().zip(usable);
    let shares = amounts.map(|(&amount, &usable)| ratio(amount, usable));
    shares.fold(0.0, f64::max)
}

/// How much of each resource belongs to one unit of the tenant's dominant share: by its demand, or equally much of each.
fn direction(usable: &[f64], account: &Account) -> Fractions {
    let most = dominant(usable, &account.demand);
    let of = |(&amount, &usable): (&i64, &f64)| match most > 0.0 {
        true => ratio(amount, usable) / most,
        false => 1.0,
    };
    account.demand.iter().zip(usable).map(of).collect()
}
