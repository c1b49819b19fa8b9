//! A bank adds interest: `accounts [ACCOUNTS [MONTHS]]`.

mod account;
mod bank;

use bank::Bank;
use std::process::ExitCode;

fn main() -> ExitCode {
    let numbers: Option<Vec<u32>> = std::env::args()
        .skip(1)
        .map(|word| word.parse().ok())
        .collect();
    let Some(numbers) = numbers else {
        eprintln!("accounts: the number of accounts and of months");
        return ExitCode::FAILURE;
    };
    let count = numbers.first().copied().unwrap_or(200_000);
    let months = numbers.get(1).copied().unwrap_or(240);
    let mut bank = Bank::new(count);
    let mut paid = 0;
    for month in 0..months {
        bank.deposit(month * 7_919 % count.max(1), 25_000);
        paid += bank.add_interest();
    }
    println!("{paid} cents of interest in {months} months");
    if let Some(richest) = bank.richest() {
        println!("most: {}", richest.address());
        println!("{richest:?}");
    }
    println!(
        "{} old accounts of branch 7",
        bank.opened_before(7, count / 200)
    );
    ExitCode::SUCCESS
}
