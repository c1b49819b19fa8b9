//! One account.

/// An account of a customer.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    pub number: u32,
    /// In cents.
    pub balance: i64,
    /// Per million and month.
    pub rate: u32,
    pub owner: String,
    pub street: String,
    pub town: String,
    pub opened: u32, // days since the bank began
    branch: u16,
    is_joint: bool,
    /// Turnover of the last quarters, in cents.
    turnover: [i64; 4],
}

impl Account {
    /// An account that a branch opens.
    pub fn open(number: u32, branch: u16, opened: u32) -> Account {
        let towns = ["Ash", "Elm", "Oak", "Yew"];
        Account {
            number,
            balance: i64::from(number % 977) * 1_000,
            rate: 800 + number % 400,
            owner: format!("Customer {number}"),
            street: format!("Street {branch}"),
            town: towns[number as usize % towns.len()].to_string(),
            opened,
            branch,
            is_joint: number % 3 == 0,
            turnover: [0; 4],
        }
    }

    /// Pays an amount in.
    pub fn deposit(&mut self, cents: i64) {
        self.balance += cents;
        self.turnover[0] += cents;
    }

    /// The branch that opened it.
    pub fn branch(&self) -> u16 {
        self.branch
    }

    /// The name on its letters.
    pub fn address(&self) -> String {
        let and = if self.is_joint { " and partner" } else { "" };
        format!("{}{and}, {}, {}", self.owner, self.street, self.town)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deposit_is_turnover() {
        let mut account = Account::open(7, 2, 10);
        account.deposit(50);
        assert_eq!(account.turnover[0], 50);
        assert!(
            format!("{account:?}")
                .starts_with("Account { number: 7, balance: 7050, rate: 807, owner: \"Cust")
        );
    }
}
