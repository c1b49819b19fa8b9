//! All accounts of a bank.

use crate::account::Account;

/// A bank.
pub struct Bank {
    accounts: Vec<Account>,
}

impl Bank {
    /// A bank with this number of accounts.
    pub fn new(count: u32) -> Bank {
        let open = |number| Account::open(number, (number % 40) as u16, number / 100);
        Bank {
            accounts: (0..count).map(open).collect(),
        }
    }

    /// Adds a month's interest to every account, and returns the sum. Inlined, it would be no region.
    #[inline(never)]
    pub fn add_interest(&mut self) -> i64 {
        let mut paid = 0;
        for account in &mut self.accounts {
            let interest = account.balance * i64::from(account.rate) / 1_000_000;
            account.balance += interest;
            paid += interest;
        }
        paid
    }

    /// Pays an amount into one account.
    pub fn deposit(&mut self, number: u32, cents: i64) {
        if let Some(account) = self.accounts.get_mut(number as usize) {
            account.deposit(cents);
        }
    }

    /// The richest account.
    pub fn richest(&self) -> Option<&Account> {
        self.accounts.iter().max_by_key(|account| account.balance)
    }

    /// Accounts of a branch that were opened before a day.
    pub fn opened_before(&self, branch: u16, day: u32) -> usize {
        self.accounts
            .iter()
            .filter(|one| one.branch() == branch && one.opened < day)
            .count()
    }
}
