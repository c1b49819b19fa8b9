//! The terminal: taken, read, and given back as it was.

use crate::draw::draw;
use crate::error::ViewError;
use crate::subject::Subject;
use crate::view::{Key, List, View};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long is waited for a key before it is looked whether a signal came.
const PATIENCE: Duration = Duration::from_millis(200);

/// Lends the terminal, and gives it back as it was: afterwards, after an error, and before a panic says what it has to.
///
/// # Errors
/// When the terminal cannot be taken, and those of `work`.
pub fn with_terminal<T>(
    work: impl FnOnce(&mut DefaultTerminal) -> Result<T, ViewError>,
) -> Result<T, ViewError> {
    // This also has panics give the terminal back before they are told.
    let mut terminal = ratatui::try_init()?;
    let done = work(&mut terminal);
    let restored = ratatui::try_restore();
    // Of a terminal that is gone both fail, and that it is gone is the reason.
    let done = done?;
    restored?;
    Ok(done)
}

/// Shows a subject until the user leaves it, or a signal asks to end.
///
/// # Errors
/// When the terminal does not do what it is told.
pub fn run(subject: Subject) -> Result<(), ViewError> {
    let ends = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        signal_hook::flag::register(signal, Arc::clone(&ends))?;
    }
    let mut view = View::new(subject);
    with_terminal(|terminal| {
        let mut page = 1;
        let mut goes_on = true;
        while goes_on && !ends.load(Ordering::Relaxed) {
            terminal.draw(|frame| page = draw(&view, frame))?;
            // A terminal of another size is drawn anew, whatever else comes.
            wait_for_input()?;
            while goes_on && event::poll(Duration::ZERO)? {
                if let Event::Key(pressed) = event::read()?
                    && let Some(key) = key(pressed)
                {
                    goes_on = view.press(key, page);
                }
            }
        }
        Ok(())
    })
}

/// Waits for a key, a new size or a signal, but not long.
///
/// A terminal that is gone is noticed here: [`event::poll`] would read its end again and again and never return.
fn wait_for_input() -> Result<(), ViewError> {
    let input = std::io::stdin();
    let mut waited = [PollFd::new(&input, PollFlags::IN)];
    let patience = Timespec { tv_sec: 0, tv_nsec: PATIENCE.as_nanos() as i64 };
    match poll(&mut waited, Some(&patience)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(ViewError::Terminal(error.into())),
    }
    match waited[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
        true => Err(ViewError::Gone),
        false => Ok(()),
    }
}

/// What a key asks for; nothing for most.
fn key(pressed: KeyEvent) -> Option<Key> {
    if pressed.kind == KeyEventKind::Release {
        return None;
    }
    if pressed.modifiers.contains(KeyModifiers::CONTROL) {
        return (pressed.code == KeyCode::Char('c')).then_some(Key::Quit);
    }
    Some(match pressed.code {
        KeyCode::Up | KeyCode::Char('k') => Key::Up,
        KeyCode::Down | KeyCode::Char('j') => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown | KeyCode::Char(' ') => Key::PageDown,
        KeyCode::Home | KeyCode::Char('g') => Key::First,
        KeyCode::End | KeyCode::Char('G') => Key::Last,
        KeyCode::Tab | KeyCode::Right | KeyCode::Char('l') => Key::Next,
        KeyCode::BackTab | KeyCode::Left | KeyCode::Char('h') => Key::Previous,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc | KeyCode::Backspace => Key::Back,
        KeyCode::Char('s') => Key::Sort,
        KeyCode::Char('q') => Key::Quit,
        KeyCode::Char(digit @ '1'..='4') => {
            let place = digit.to_digit(10).and_then(|digit| digit.checked_sub(1))?;
            Key::List(*List::ALL.get(place as usize)?)
        }
        _ => return None,
    })
}
