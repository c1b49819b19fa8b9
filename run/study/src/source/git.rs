//! The Git operations of bisection. All work happens in a scratch clone that borrows the user's objects; the user's
//! repository is only read.

use crate::error::{Doing, Error, Result};
use crate::process::tool;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A commit by its full hash.
pub type Commit = String;

/// The scratch clone.
pub struct Scratch {
    root: PathBuf,
}

/// The result of replaying a series of commits elsewhere.
pub enum Replay {
    /// The copies, in order.
    Done(Vec<Commit>),
    /// This commit does not apply there.
    Conflict(Commit),
}

impl Scratch {
    /// Opens the scratch clone in a directory, or makes it.
    pub fn open(repository: &Path, directory: &Path) -> Result<Self> {
        let root = directory.join("repository");
        if !root.join(".git").exists() {
            std::fs::create_dir_all(directory).doing_with(|| format!("making {}", directory.display()))?;
            let mut command = Command::new("git");
            command.args(["clone", "--quiet", "--shared", "--no-checkout", "--"]);
            succeed(command.arg(repository).arg(&root), "cloning the repository")?;
        }
        Ok(Self { root })
    }

    fn git(&self, arguments: &[&str]) -> Result<String> {
        self.git_in(&self.root, arguments)
    }

    fn git_in(&self, directory: &Path, arguments: &[&str]) -> Result<String> {
        let output = succeed(command_in(directory, arguments), &format!("git {}", arguments.join(" ")))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Commits that lead from `good` to `bad` by first parents, oldest first, `bad` included.
    pub fn first_parents(&self, good: &str, bad: &str) -> Result<Vec<Commit>> {
        let range = format!("{good}..{bad}");
        let list = self.git(&["rev-list", "--first-parent", "--reverse", &range])?;
        Ok(list.lines().map(str::to_owned).collect())
    }

    /// Commits of `tip` that `base` lacks, oldest first, without merges.
    pub fn line(&self, base: &str, tip: &str) -> Result<Vec<Commit>> {
        let range = format!("{base}..{tip}");
        let list = self.git(&["rev-list", "--topo-order", "--no-merges", "--reverse", &range])?;
        Ok(list.lines().map(str::to_owned).collect())
    }

    /// The parents of a commit.
    pub fn parents(&self, commit: &str) -> Result<Vec<Commit>> {
        let line = self.git(&["rev-list", "--parents", "--max-count=1", commit])?;
        Ok(line.split_whitespace().skip(1).map(str::to_owned).collect())
    }

    /// The best common ancestor; `None` for unrelated histories.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<Commit>> {
        let output =
            tool::output(&mut command_in(&self.root, &["merge-base", one, other])).doing("git merge-base")?;
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        Ok((output.status.success() && !text.is_empty()).then_some(text))
    }

    /// A commit's abbreviated hash and subject.
    pub fn title(&self, commit: &str) -> Result<String> {
        self.git(&["log", "--max-count=1", "--format=%h %s", commit])
    }

    /// A directory with the commit checked out, one per commit.
    pub fn checkout(&self, commit: &str) -> Result<PathBuf> {
        let path = self.worktree_path(commit);
        if !path.exists() {
            // A worktree whose directory was deleted is still registered until pruned.
            self.git(&["worktree", "prune"])?;
            let target = path.to_string_lossy().into_owned();
            self.git(&["worktree", "add", "--quiet", "--detach", &target, commit])?;
        }
        Ok(path)
    }

    fn worktree_path(&self, name: &str) -> PathBuf {
        self.root.with_file_name(format!("at-{name}"))
    }

    /// Copies commits onto another one, in order. Author dates are kept and commit dates follow them, so that the same
    /// replay makes the same commits again.
    pub fn replay(&self, onto: &str, commits: &[Commit]) -> Result<Replay> {
        let path = self.worktree_path("replay");
        if path.exists() {
            self.git(&["worktree", "remove", "--force", &path.to_string_lossy()])?;
        }
        self.git(&["worktree", "prune"])?;
        self.git(&["worktree", "add", "--quiet", "--detach", &path.to_string_lossy(), onto])?;
        let mut copies = Vec::new();
        for commit in commits {
            let date = self.git(&["log", "--max-count=1", "--format=%aI", commit])?;
            let mut command =
                command_in(&path, &["cherry-pick", "--allow-empty", "--keep-redundant-commits", commit]);
            command.env("GIT_COMMITTER_DATE", &date);
            command.env("GIT_COMMITTER_NAME", "lineup").env("GIT_COMMITTER_EMAIL", "lineup@localhost");
            if !tool::output(&mut command).doing("git cherry-pick")?.status.success() {
                return Ok(Replay::Conflict(commit.clone()));
            }
            copies.push(self.git_in(&path, &["rev-parse", "HEAD"])?);
        }
        Ok(Replay::Done(copies))
    }
}

/// The repository that holds the working directory.
pub fn repository() -> Result<PathBuf> {
    let here = std::env::current_dir().doing("asking for the working directory")?;
    let output = succeed(
        command_in(&here, &["rev-parse", "--path-format=absolute", "--git-common-dir"]),
        "looking for a git repository",
    )?;
    Ok(PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()))
}

/// The commit that a revision names in a repository.
pub fn resolve(repository: &Path, revision: &str) -> Result<Commit> {
    let peeled = format!("{revision}^{{commit}}");
    let output = succeed(
        command_in(repository, &["rev-parse", "--verify", "--quiet", "--end-of-options", &peeled]),
        &format!("{revision:?} names no commit: git rev-parse"),
    )?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The author of commits made in a folder, as mails name them.
pub fn author_in(folder: &Path) -> String {
    let asked = succeed(command_in(folder, &["var", "GIT_AUTHOR_IDENT"]), "git var").ok();
    let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let author = said.and_then(|said| Some(format!("{}>", said.split_once('>')?.0)));
    author.unwrap_or_else(|| "Lineup <lineup@localhost>".to_owned())
}

/// A folder's path below the top of its repository, empty at the top; `None` outside of repositories.
pub fn place_in_repository(folder: &Path) -> Option<String> {
    let output = succeed(command_in(folder, &["rev-parse", "--show-prefix"]), "git rev-parse").ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim_end().trim_end_matches('/').to_owned())
}

fn command_in(directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command.current_dir(directory).args(arguments);
    // Variables that a surrounding git command (a hook, an alias) may have set would lead elsewhere.
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX"] {
        command.env_remove(variable);
    }
    command
}

fn succeed(mut command: impl std::borrow::BorrowMut<Command>, what: &str) -> Result<Output> {
    let output = tool::output(command.borrow_mut()).doing_with(|| format!("{what}: is git installed?"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Git { what: what.to_owned(), said });
    }
    Ok(output)
}
