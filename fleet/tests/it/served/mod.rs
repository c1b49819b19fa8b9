//! A server of S3's protocol on this machine, whose buckets are folders, and runs of the command against it.

#![allow(dead_code, reason = "each test file uses some of it")]

use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder as Connection;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s_fs::FileSystem;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// The only access key that the server accepts.
pub(crate) const KEY: &str = "AKIDOFTHETESTS";
pub(crate) const SECRET: &str = "wJalrXUtnFEMI-not-a-real-one";

/// A bucket of it, and a store in that.
pub(crate) const BUCKET: &str = "fleet";
pub(crate) const STORE: &str = "s3://fleet/of/all";

/// The server; it ends with this.
pub(crate) struct Server {
    address: SocketAddr,
    root: TempDir,
    _runtime: Runtime,
}

impl Server {
    /// A server with an empty bucket.
    pub(crate) fn start() -> Server {
        let root = tempfile::tempdir().expect("a folder");
        fs::create_dir(root.path().join(BUCKET)).expect("a bucket");
        let mut service = S3ServiceBuilder::new(FileSystem::new(root.path()).expect("a file system"));
        service.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("threads");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        runtime.spawn(serve(listener, service.build()));
        Server { address, root, _runtime: runtime }
    }

    /// The server's path of a file of the store.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.root.path().join(BUCKET).join("of/all").join(path)
    }

    /// `lineup-fleet` with the server's credentials.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lineup-fleet"));
        command.args(arguments).envs(self.variables());
        command
    }

    /// Variables with the server's address and credentials.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let address = format!("http://{}", self.address);
        let fixed = [
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ACCESS_KEY_ID", KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET),
        ];
        let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
        [("AWS_ENDPOINT", address)].into_iter().chain(fixed).collect()
    }

    /// Standard output of a command that succeeds.
    pub(crate) fn says(&self, arguments: &[&str]) -> String {
        let [out, error, code] = texts(self.command(arguments).output().expect("it runs"));
        assert_eq!(code, "Some(0)", "{arguments:?}\n{out}{error}");
        out
    }
}

/// Standard output, standard error, and the exit code.
pub(crate) fn texts(output: Output) -> [String; 3] {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    [text(output.stdout), text(output.stderr), format!("{:?}", output.status.code())]
}

async fn serve(listener: TcpListener, service: S3Service) {
    while let Ok((socket, _)) = listener.accept().await {
        let service = service.clone();
        tokio::spawn(async move {
            let connection = Connection::new(TokioExecutor::new());
            // A client that goes away is no failure of the server.
            let _ = connection.serve_connection(TokioIo::new(socket), service).await;
        });
    }
}
