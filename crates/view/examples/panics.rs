//! Takes the terminal and panics: a test looks whether the terminal is as it was.

fn main() -> Result<(), lineup_view::ViewError> {
    lineup_view::with_terminal(|terminal| {
        terminal.draw(|frame| frame.render_widget("taken", frame.area()))?;
        std::thread::sleep(std::time::Duration::from_secs(1));
        panic!("on purpose")
    })
}
