//! A cluster of Apache Ballista, which answers questions in place of this machine. Its programs are those that Ballista
//! publishes. This file is the client, which needs the feature `cluster`.

use crate::error::{FleetError, Result};
use datafusion::arrow::array::RecordBatch;
use datafusion::physical_plan::collect;
use datafusion::prelude::DataFrame;
#[cfg(not(feature = "cluster"))]
use datafusion::prelude::SessionContext;
use std::io::{Error, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
#[cfg(not(feature = "cluster"))]
use tokio::runtime::Runtime;
use tokio::time::{sleep, timeout};
use url::Url;

/// Default time limit of a question. A scheduler with default settings notices after three minutes that an executor is
/// gone, and gives its work to others then.
pub const WAIT: Duration = Duration::from_secs(600);

/// A scheduler takes a connection within this time, or is not there.
const CONNECT: Duration = Duration::from_secs(10);

/// A scheduler whose connection broke has given up its port after this time, if it has ended.
const ENDING: Duration = Duration::from_millis(500);

/// A cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// `HOST:PORT` of its scheduler.
    scheduler: String,
    wait: Duration,
}

impl Cluster {
    /// The cluster whose scheduler is at `HOST:PORT`, with a time limit for each question.
    ///
    /// # Errors
    /// When that is no address, or this program was built without a client of clusters.
    pub fn at(given: &str, wait: Duration) -> Result<Cluster> {
        if cfg!(not(feature = "cluster")) {
            return Err(FleetError::NoClusters);
        }
        let url = Url::parse(&format!("df://{given}")).ok().filter(|url| {
            let is_plain = url.username().is_empty() && url.password().is_none() && url.path().is_empty();
            is_plain && url.query().is_none() && url.fragment().is_none()
        });
        let parts = url.as_ref().and_then(|url| Some((url.host_str()?, url.port()?)));
        let (host, port) = parts.ok_or_else(|| FleetError::ClusterAddress { given: given.to_owned() })?;
        Ok(Cluster { scheduler: format!("{host}:{port}"), wait })
    }

    /// `HOST:PORT` of the scheduler.
    pub fn scheduler(&self) -> &str {
        &self.scheduler
    }

    /// Checks that the scheduler takes connections.
    pub(crate) fn is_there(&self, when: &'static str) -> Result<()> {
        let gone = |cause| FleetError::ClusterGone { scheduler: self.scheduler.clone(), when, cause };
        let mut last = Error::new(ErrorKind::NotFound, "the host has no address");
        for address in self.scheduler.to_socket_addrs().map_err(gone)? {
            match TcpStream::connect_timeout(&address, CONNECT) {
                Ok(_) => return Ok(()),
                Err(cause) => last = cause,
            }
        }
        Err(gone(last))
    }

    /// The cluster's answer to a question about the store at this URL.
    pub(crate) async fn answer(&self, frame: DataFrame, url: &str) -> Result<Vec<RecordBatch>> {
        let context = Arc::new(frame.task_ctx());
        let plan = frame.create_physical_plan().await?;
        let scheduler = self.scheduler.clone();
        match timeout(self.wait, collect(plan.clone(), context)).await {
            Ok(Ok(batches)) => Ok(batches),
            Ok(Err(error)) => {
                // A program that ends may give up its port a moment after its connections.
                sleep(ENDING).await;
                self.is_there("any more")?;
                let (cause, url) = (error.strip_backtrace(), url.to_owned());
                Err(FleetError::ClusterFailed { scheduler, cause, url })
            }
            Err(_) => {
                #[cfg(feature = "cluster")]
                self.withdraw(&plan).await;
                Err(FleetError::ClusterSlow { scheduler, seconds: self.wait.as_secs() })
            }
        }
    }

    /// An error: this build has no client of clusters.
    #[cfg(not(feature = "cluster"))]
    pub(crate) fn context(&self, _: &Runtime) -> Result<SessionContext> {
        Err(FleetError::NoClusters)
    }
}

#[cfg(feature = "cluster")]
mod client {
    //! The parts that need Ballista's client.

    use super::{CONNECT, Cluster};
    use crate::error::Result;
    use ballista::prelude::{SessionConfigExt, SessionContextExt};
    use ballista_core::execution_plans::DistributedQueryExec;
    use ballista_core::serde::protobuf::CancelJobParams;
    use ballista_core::serde::protobuf::scheduler_grpc_client::SchedulerGrpcClient;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::physical_plan::ExecutionPlan;
    use datafusion::prelude::{SessionConfig, SessionContext};
    use datafusion_proto::protobuf::LogicalPlanNode;
    use std::sync::Arc;
    use tokio::runtime::Runtime;
    use tokio::time::timeout;

    /// A joined table of at most this size goes to each executor as a copy.
    const SMALL_BYTES: usize = 64 << 20;

    impl Cluster {
        /// A session that hands questions to the cluster.
        pub(crate) fn context(&self, runtime: &Runtime) -> Result<SessionContext> {
            let config = SessionConfig::new_with_ballista()
                .with_collect_statistics(false)
                .with_ballista_broadcast_join_threshold_bytes(SMALL_BYTES)
                // Otherwise Ballista would sort both sides of every join, and would send no small side around.
                .set_bool("datafusion.optimizer.prefer_hash_join", true)
                .set_usize("datafusion.optimizer.hash_join_single_partition_threshold", SMALL_BYTES)
                .set_u64("ballista.client.grpc_connect_timeout_seconds", CONNECT.as_secs())
                .set_u64("ballista.client.grpc_http2_keepalive_interval_seconds", CONNECT.as_secs());
            let state = SessionStateBuilder::new().with_default_features().with_config(config).build();
            let url = format!("df://{}", self.scheduler);
            Ok(runtime.block_on(SessionContext::remote_with_state(&url, state))?)
        }

        /// Sends the scheduler that nobody waits for a question any more. A scheduler that does not listen works on.
        pub(super) async fn withdraw(&self, plan: &Arc<dyn ExecutionPlan>) {
            let asked = plan.downcast_ref::<DistributedQueryExec<LogicalPlanNode>>();
            let Some(job) = asked.and_then(DistributedQueryExec::job_id) else { return };
            let told = async {
                let url = format!("http://{}", self.scheduler);
                let mut scheduler = SchedulerGrpcClient::connect(url).await.ok()?;
                scheduler.cancel_job(CancelJobParams { job_id: job.into() }).await.ok()
            };
            let _ = timeout(CONNECT, told).await;
        }
    }
}
