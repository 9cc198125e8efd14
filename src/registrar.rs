//! Registration of metrics. Each one is listed with its type and its labels, so that the generated
//! reference also has families without a series.

use std::fmt;

use prometheus::core::{Collector, MetricVec, MetricVecBuilder};
use prometheus::{
    Counter, CounterVec, Gauge, GaugeVec, Histogram, HistogramOpts, HistogramVec, IntCounter,
    IntCounterVec, IntGauge, Opts, Registry, Result,
};

/// A family of metrics with `N` labels.
#[derive(Clone)]
pub struct Family<V, const N: usize>(V);

/// Counters of whole numbers.
pub type Counters<const N: usize> = Family<IntCounterVec, N>;
/// Counters of fractions.
pub type Sums<const N: usize> = Family<CounterVec, N>;
/// Gauges.
pub type Gauges<const N: usize> = Family<GaugeVec, N>;
/// Histograms.
pub type Histograms<const N: usize> = Family<HistogramVec, N>;

impl<B: MetricVecBuilder, const N: usize> Family<MetricVec<B>, N> {
    /// The series with these values of the labels; a new one begins at 0.
    pub fn with(&self, values: [&str; N]) -> B::M {
        // The registrar has created the family with N labels.
        self.0.with_label_values(&values)
    }

    /// Drops the series with these values, if there is one.
    pub fn remove(&self, values: [&str; N]) {
        let _ = self.0.remove_label_values(&values);
    }

    /// Drops all series.
    pub fn clear(&self) {
        self.0.reset();
    }
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricType {
    /// It only grows, until the process ends.
    Counter,
    /// It grows and falls.
    Gauge,
    /// Counts of observations by size.
    Histogram,
}

impl fmt::Display for MetricType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        })
    }
}

/// A kind of metric that a [`Registrar`] registers.
pub trait Metric: Sized {
    /// What it takes in addition to a name and a help text: labels, bounds of buckets.
    type Options;
    /// What the registry collects.
    type Collected: Collector + Clone + 'static;
    /// Its type.
    const TYPE: MetricType;

    /// A new one, not registered.
    fn new(name: &str, help: &str, options: Self::Options) -> Result<Self>;

    /// What the registry collects of it.
    fn collector(&self) -> &Self::Collected;
}

/// Metrics without labels.
macro_rules! single {
    ($($metric:ty => $type:expr),*) => {$(
        impl Metric for $metric {
            type Options = ();
            type Collected = Self;
            const TYPE: MetricType = $type;

            fn new(name: &str, help: &str, (): ()) -> Result<Self> {
                Self::new(name, help)
            }

            fn collector(&self) -> &Self {
                self
            }
        }
    )*};
}

single!(IntCounter => MetricType::Counter, Counter => MetricType::Counter);
single!(IntGauge => MetricType::Gauge, Gauge => MetricType::Gauge);

/// Families with these names of their labels.
macro_rules! labelled {
    ($($vec:ty => $type:expr),*) => {$(
        impl<const N: usize> Metric for Family<$vec, N> {
            type Options = [&'static str; N];
            type Collected = $vec;
            const TYPE: MetricType = $type;

            fn new(name: &str, help: &str, labels: Self::Options) -> Result<Self> {
                <$vec>::new(Opts::new(name, help), &labels).map(Self)
            }

            fn collector(&self) -> &$vec {
                &self.0
            }
        }
    )*};
}

labelled!(IntCounterVec => MetricType::Counter, CounterVec => MetricType::Counter, GaugeVec => MetricType::Gauge);

impl Metric for Histogram {
    /// The upper bounds of its buckets.
    type Options = Vec<f64>;
    type Collected = Self;
    const TYPE: MetricType = MetricType::Histogram;

    fn new(name: &str, help: &str, buckets: Vec<f64>) -> Result<Self> {
        Self::with_opts(HistogramOpts::new(name, help).buckets(buckets))
    }

    fn collector(&self) -> &Self {
        self
    }
}

impl<const N: usize> Metric for Histograms<N> {
    /// The names of the labels, and the upper bounds of the buckets.
    type Options = ([&'static str; N], Vec<f64>);
    type Collected = HistogramVec;
    const TYPE: MetricType = MetricType::Histogram;

    fn new(name: &str, help: &str, (labels, buckets): Self::Options) -> Result<Self> {
        HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets), &labels).map(Self)
    }

    fn collector(&self) -> &HistogramVec {
        &self.0
    }
}

/// A struct of metrics with its registration. A field has a type, a name, a help text and the type's options. The
/// function at the end begins the series that exist from the start: Prometheus sees no increase in one that begins at 1.
macro_rules! metrics {
    ($(#[$meta:meta])* $vis:vis struct $struct:ident {$(
        $field_vis:vis $field:ident: $type:ty = $name:literal, $help:literal $(, $options:expr)?;
    )*} $(=> $begin:path)?) => {
        $(#[$meta])*
        $vis struct $struct {$(
            #[doc = $help]
            $field_vis $field: $type,
        )*}

        impl $struct {
            /// Registers everything.
            $vis fn register(registrar: &mut $crate::registrar::Registrar) -> prometheus::Result<Self> {
                let metrics = Self {$(
                    $field: registrar.register($name, $help, ($($options)?))?,
                )*};
                $($begin(&metrics);)?
                Ok(metrics)
            }
        }
    };
}

pub(crate) use metrics;

/// A metric as the reference lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its whole name.
    pub name: String,
    /// Its type.
    pub kind: MetricType,
    /// The names of its labels.
    pub labels: Vec<String>,
    /// What it measures.
    pub help: String,
}

/// Registers metrics.
#[derive(Default)]
pub struct Registrar {
    registry: Registry,
    listed: Vec<Listed>,
}

impl Registrar {
    /// The registry and the list of its metrics, by name.
    pub fn finish(mut self) -> (Registry, Vec<Listed>) {
        self.listed.sort_by(|a, b| a.name.cmp(&b.name));
        (self.registry, self.listed)
    }

    /// Registers a metric.
    pub fn register<M: Metric>(
        &mut self,
        name: &str,
        help: &str,
        options: M::Options,
    ) -> Result<M> {
        let metric = M::new(name, help, options)?;
        let collector = metric.collector();
        self.list(|_| M::TYPE, collector);
        self.registry.register(Box::new(collector.clone()))?;
        Ok(metric)
    }

    /// The metrics of this process: CPU, memory, files, threads, start.
    #[cfg(target_os = "linux")]
    pub fn process(&mut self) -> Result<()> {
        let process = prometheus::process_collector::ProcessCollector::for_self();
        let kind = |name: &str| match name.ends_with("_total") {
            true => MetricType::Counter,
            false => MetricType::Gauge,
        };
        self.list(kind, &process);
        self.registry.register(Box::new(process))
    }

    fn list(&mut self, kind: impl Fn(&str) -> MetricType, collector: &impl Collector) {
        let listed = collector.desc().into_iter().map(|desc| Listed {
            name: desc.fq_name.clone(),
            kind: kind(&desc.fq_name),
            labels: desc.variable_labels.clone(),
            help: desc.help.trim_end_matches('.').to_owned(),
        });
        self.listed.extend(listed);
    }
}
