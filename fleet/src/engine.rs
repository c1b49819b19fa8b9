//! The engine over a store: DataFusion on this machine, or in front of a cluster.

use crate::cluster::Cluster;
use crate::error::{FleetError, Result};
use crate::store::{ENDING, Store};
use crate::table::Table;
use crate::tables::{self, RUNS};
use crate::views::{self, View};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::MemTable;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Default memory for questions; a question that needs more uses the disk.
pub const MEMORY_BYTES: usize = 2 << 30;

/// The least number of parts that work is split into. In one part, as on one processor, DataFusion 54.1 was seen to
/// answer about `disputed_types` of 40 services with groups that came several times.
const LEAST_PARTS: usize = 2;

/// The store's URL within the engine, wherever the store is.
const URL: &str = "store://fleet/";

/// An engine with a store's tables and views.
pub struct Engine {
    runtime: Arc<Runtime>,
    context: SessionContext,
    /// The store's URL for the machines that answer.
    url: String,
    /// The cluster that answers; `None` for this machine.
    cluster: Option<Cluster>,
}

/// An answer.
#[derive(Debug)]
pub struct Answer {
    /// Its columns.
    pub schema: SchemaRef,
    /// Its rows, in parts.
    pub batches: Vec<RecordBatch>,
}

impl Answer {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }
}

impl Engine {
    /// The engine over a store, with this much memory for sorting and joining.
    ///
    /// # Errors
    /// When the runs cannot be read, or the engine does not take a view.
    pub fn over(store: &Store, memory_bytes: usize) -> Result<Engine> {
        let environment = RuntimeEnvBuilder::new().with_memory_limit(memory_bytes, 1.0).build_arc()?;
        // Statistics would require reading each file before any question.
        let config = SessionConfig::new().with_information_schema(true).with_collect_statistics(false);
        let parts = config.target_partitions().max(LEAST_PARTS);
        let config = config.with_target_partitions(parts);
        let context = SessionContext::new_with_config_rt(config, environment);
        context.register_object_store(ListingTableUrl::parse(URL)?.object_store().as_ref(), store.objects());
        let engine = Engine { runtime: store.runtime(), context, url: URL.into(), cluster: None };
        for table in tables::ALL {
            engine.add_files(table)?;
        }
        engine.keep_runs()?;
        engine.with_views()
    }

    /// The engine over a store whose questions a cluster answers.
    ///
    /// # Errors
    /// When the cluster does not answer or sees other runs than this machine, or the engine does not take a view.
    pub fn on_cluster(store: &Store, cluster: Cluster) -> Result<Engine> {
        let (url, runs) = (store.for_ballista()?.to_string(), store.runs()?);
        cluster.is_there("before the question")?;
        let runtime = store.runtime();
        let context = cluster.context(&runtime)?;
        let engine = Engine { runtime, context, url, cluster: Some(cluster) };
        for table in tables::ALL {
            engine.add_files(table)?;
        }
        engine.sees(runs)?;
        engine.with_views()
    }

    /// Checks that the machines that answer find these runs. One that finds no files would give an empty answer and no
    /// error.
    fn sees(&self, mut runs: BTreeSet<String>) -> Result<()> {
        let there = runs.len();
        let answer = self.ask(&format!("SELECT run FROM {}", views::stored(RUNS.name)))?;
        for run in answer.texts(0)?.into_iter().flatten() {
            runs.remove(&run);
        }
        match (&self.cluster, runs.len()) {
            (Some(cluster), missing @ 1..) => Err(FleetError::ClusterBlind {
                scheduler: cluster.scheduler().to_owned(),
                seen: there - missing,
                runs: there,
                url: self.url.clone(),
            }),
            _ => Ok(()),
        }
    }

    fn with_views(self) -> Result<Engine> {
        for table in tables::ALL {
            self.add_view(table.name, &views::counted(table.name))?;
        }
        for View { name, sql } in views::ALL {
            self.add_view(name, sql)?;
        }
        Ok(self)
    }

    fn add_files(&self, table: &Table) -> Result<()> {
        let folder = format!("{}{}/", self.url, table.name);
        let mut options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension(ENDING);
        if self.cluster.is_some() {
            // Parts for the executors. The files show that the runs are few, so each executor gets a copy of them.
            // Otherwise both sides of a join would be sent around.
            let parts = self.context.copied_config().target_partitions();
            options = options.with_target_partitions(parts).with_collect_stat(table.name == RUNS.name);
        }
        let config = ListingTableConfig::new(ListingTableUrl::parse(folder)?)
            .with_listing_options(options)
            .with_schema(table.schema());
        self.context.register_table(views::stored(table.name), Arc::new(ListingTable::try_new(config)?))?;
        Ok(())
    }

    /// Reads the runs, once: every question joins them, mostly more than once. Until the question is answered, the
    /// engine holds some 20 KB for each file that it opens.
    fn keep_runs(&self) -> Result<()> {
        let name = views::stored(RUNS.name);
        self.runtime.block_on(async {
            let frame = self.context.table(name.as_str()).await?;
            let schema = Arc::new(frame.schema().as_arrow().clone());
            let runs = concat_batches(&schema, &frame.collect().await?)?;
            self.context.deregister_table(name.as_str())?;
            self.context.register_table(name, Arc::new(MemTable::try_new(schema, vec![vec![runs]])?))?;
            Ok(())
        })
    }

    fn add_view(&self, name: &str, sql: &str) -> Result<()> {
        self.runtime.block_on(async {
            let view = self.context.sql(sql).await?.into_view();
            self.context.register_table(name, view)?;
            Ok(())
        })
    }

    /// Answers a question. It may only read.
    ///
    /// # Errors
    /// When the engine does not take it, or cannot answer it.
    pub fn ask(&self, sql: &str) -> Result<Answer> {
        let reads =
            SQLOptions::new().with_allow_ddl(false).with_allow_dml(false).with_allow_statements(false);
        self.runtime.block_on(async {
            let frame = self.context.sql_with_options(sql, reads).await?;
            let schema = Arc::new(frame.schema().as_arrow().clone());
            let batches = match &self.cluster {
                Some(cluster) => cluster.answer(frame, &self.url).await?,
                None => frame.collect().await?,
            };
            Ok(Answer { schema, batches })
        })
    }
}
