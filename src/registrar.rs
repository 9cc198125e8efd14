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

    /// A counter of whole numbers.
    pub fn counter(&mut self, name: &str, help: &str) -> Result<IntCounter> {
        self.add(MetricType::Counter, IntCounter::new(name, help))
    }

    /// Counters of whole numbers.
    pub fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Counters<N>> {
        let made = IntCounterVec::new(Opts::new(name, help), &labels);
        self.add(MetricType::Counter, made).map(Family)
    }

    /// A counter of fractions.
    pub fn sum(&mut self, name: &str, help: &str) -> Result<Counter> {
        self.add(MetricType::Counter, Counter::new(name, help))
    }

    /// Counters of fractions.
    pub fn sums<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Sums<N>> {
        let made = CounterVec::new(Opts::new(name, help), &labels);
        self.add(MetricType::Counter, made).map(Family)
    }

    /// A gauge of whole numbers.
    pub fn count(&mut self, name: &str, help: &str) -> Result<IntGauge> {
        self.add(MetricType::Gauge, IntGauge::new(name, help))
    }

    /// A gauge.
    pub fn gauge(&mut self, name: &str, help: &str) -> Result<Gauge> {
        self.add(MetricType::Gauge, Gauge::new(name, help))
    }

    /// Gauges.
    pub fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
    ) -> Result<Gauges<N>> {
        let made = GaugeVec::new(Opts::new(name, help), &labels);
        self.add(MetricType::Gauge, made).map(Family)
    }

    /// A histogram with these upper bounds of its buckets.
    pub fn histogram(&mut self, name: &str, help: &str, buckets: &[f64]) -> Result<Histogram> {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        self.add(MetricType::Histogram, Histogram::with_opts(options))
    }

    /// Histograms with these upper bounds of their buckets.
    pub fn histograms<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        labels: [&str; N],
        buckets: &[f64],
    ) -> Result<Histograms<N>> {
        let options = HistogramOpts::new(name, help).buckets(buckets.to_vec());
        let made = HistogramVec::new(options, &labels);
        self.add(MetricType::Histogram, made).map(Family)
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

    fn add<C: Collector + Clone + 'static>(
        &mut self,
        kind: MetricType,
        made: Result<C>,
    ) -> Result<C> {
        let metric = made?;
        self.list(|_| kind, &metric);
        self.registry.register(Box::new(metric.clone()))?;
        Ok(metric)
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
