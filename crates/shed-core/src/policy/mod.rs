//! The policy of an operator: in which order first attempts are served and who gets clones.
//! Written as text such as `shed-plus{xi=0.1,theta=0.05,max_clones=5,mode=guarded}`.

use std::fmt;
use std::str::FromStr;

use crate::optimize::greedy::GreedyMode;
use crate::time::Span;

pub(crate) mod shed_plus;

/// Everything that the operator's user may choose about decisions.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Who is first when capacity is short.
    pub order: Order,
    /// Who gets clones.
    pub speculation: Speculation,
    /// λ: the share of the cluster that attempts may use, above 0 and at most 1.
    pub capacity_share: f64,
    /// First attempts that may wait as pods beyond capacity, so that autoscalers see demand.
    pub surge_max: u32,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            order: Order::default(),
            speculation: Speculation::default(),
            capacity_share: 1.0,
            surge_max: 1,
        }
    }
}

/// The order of first attempts and retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// Least slack first; jobs that can't make it last.
    #[default]
    LeastSlack,
    /// Earliest deadline first.
    EarliestDeadline,
    /// First submitted first.
    Fifo,
}

impl Order {
    const ALL: [Self; 3] = [Self::LeastSlack, Self::EarliestDeadline, Self::Fifo];

    /// The name in settings.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::LeastSlack => "lst",
            Self::EarliestDeadline => "edf",
            Self::Fifo => "fifo",
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

impl FromStr for Order {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|order| order.label() == text);
        found.ok_or_else(|| ParsePolicyError(format!("`{text}` is no order: use lst, edf or fifo")))
    }
}

/// Who gets clones.
#[derive(Debug, Clone, PartialEq)]
pub enum Speculation {
    /// Hadoop-NS: nobody.
    HadoopNs,
    /// Stragglers, by the Shed+ optimizer.
    ShedPlus(ShedPlus),
}

impl Default for Speculation {
    fn default() -> Self {
        Self::ShedPlus(ShedPlus::default())
    }
}

/// The parameters of Shed+, named as in the papers.
#[derive(Debug, Clone, PartialEq)]
pub struct ShedPlus {
    /// ξ: the job progress at which the optimizer first runs for a job.
    pub xi: f64,
    /// θ': the share of the deadline that lies between two runs for a job, eq. 17.
    pub theta: f64,
    /// MAX: the most clones that a task may have at a time; jobs may allow less.
    pub max_clones: u32,
    /// A task whose probability of a miss is at or below this gets no further clone; 0 for the
    /// papers' rule, which goes on until capacity or MAX is reached.
    pub miss_target: f64,
    /// How clones are shared out.
    pub mode: Mode,
    /// t_avg as long as none was measured.
    pub launch_overhead: Span,
    /// Lower bound of θ.
    pub min_interval: Span,
}

impl Default for ShedPlus {
    fn default() -> Self {
        Self {
            xi: 0.1,
            theta: 0.05,
            max_clones: 5,
            miss_target: 0.01,
            mode: Mode::Guarded,
            launch_overhead: Span::from_seconds(3),
            min_interval: Span::from_seconds(1),
        }
    }
}

/// How the greedy optimizer picks who gets the next clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// As printed in [S+]: the job with the lowest PoCD, its task with the lowest.
    Paper,
    /// The same without jobs that no clone can help.
    Guarded,
    /// The job with the lowest PoCD, its task with the largest gain.
    MaxMin,
    /// The task with the largest gain in log PoCD over all jobs.
    Marginal,
}

impl Mode {
    const ALL: [Self; 4] = [Self::Paper, Self::Guarded, Self::MaxMin, Self::Marginal];

    pub(crate) fn greedy(self) -> GreedyMode {
        match self {
            Self::Paper => GreedyMode::Paper,
            Self::Guarded => GreedyMode::Guarded,
            Self::MaxMin => GreedyMode::MaxMin,
            Self::Marginal => GreedyMode::Marginal,
        }
    }

    /// The name in the policy string.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Paper => "paper",
            Self::Guarded => "guarded",
            Self::MaxMin => "maxmin",
            Self::Marginal => "marginal",
        }
    }
}

/// Why a text is no policy; the message lists what would be one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsePolicyError(String);

impl fmt::Display for ParsePolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParsePolicyError {}

/// For the message of every error in a policy string.
const HELP: &str = "known policies: `hadoop-ns` (no clones) and `shed-plus` with the parameters \
    xi (0 to 1), theta (0 to 1), max_clones (0 to 20), miss_target (0 to 1), mode (paper, guarded, maxmin, marginal), \
    launch_overhead (seconds, 0 to 3600), min_interval (seconds, 0.1 to 3600), \
    as in `shed-plus{xi=0.1,mode=guarded}`";

fn error(what: impl fmt::Display) -> ParsePolicyError {
    ParsePolicyError(format!("{what}; {HELP}"))
}

impl FromStr for Speculation {
    type Err = ParsePolicyError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let (name, parameters) = match text.split_once('{') {
            None => (text, ""),
            Some((name, rest)) => {
                let inner = rest.strip_suffix('}');
                let inner = inner.ok_or_else(|| error(format!("`{text}` lacks its `}}`")))?;
                (name.trim_end(), inner)
            }
        };
        let parts = || {
            parameters
                .split(',')
                .map(str::trim)
                .filter(|p| !p.is_empty())
        };
        match name {
            "hadoop-ns" => match parts().next() {
                None => Ok(Self::HadoopNs),
                Some(part) => Err(error(format!("`hadoop-ns` has no parameter `{part}`"))),
            },
            "shed-plus" => parts().map(pair).collect::<Result<Vec<_>, _>>()?.try_into(),
            _ => Err(error(format!("`{name}` is no policy"))),
        }
    }
}

fn pair(part: &str) -> Result<(&str, &str), ParsePolicyError> {
    let (name, value) = part
        .split_once('=')
        .ok_or_else(|| error(format!("`{part}` is not name=value")))?;
    Ok((name.trim(), value.trim()))
}

impl TryFrom<Vec<(&str, &str)>> for Speculation {
    type Error = ParsePolicyError;

    fn try_from(pairs: Vec<(&str, &str)>) -> Result<Self, Self::Error> {
        let mut plus = ShedPlus::default();
        for (position, &(name, value)) in pairs.iter().enumerate() {
            if pairs.iter().take(position).any(|(other, _)| *other == name) {
                return Err(error(format!("`{name}` is given twice")));
            }
            plus.set(name, value)?;
        }
        Ok(Self::ShedPlus(plus))
    }
}

impl ShedPlus {
    fn set(&mut self, name: &str, value: &str) -> Result<(), ParsePolicyError> {
        match name {
            "xi" => self.xi = number(name, value, 0.0, 1.0)?,
            "theta" => self.theta = number(name, value, 0.0, 1.0)?,
            // A whole number in that range: the cast is exact.
            "max_clones" => self.max_clones = whole(name, value, 20.0)? as u32,
            "miss_target" => self.miss_target = number(name, value, 0.0, 1.0)?,
            "mode" => {
                let found = Mode::ALL.into_iter().find(|mode| mode.label() == value);
                self.mode = found.ok_or_else(|| error(format!("`{value}` is no mode")))?;
            }
            "launch_overhead" => {
                self.launch_overhead = Span::from_seconds_f64(number(name, value, 0.0, 3600.0)?);
            }
            "min_interval" => {
                self.min_interval = Span::from_seconds_f64(number(name, value, 0.1, 3600.0)?);
            }
            _ => return Err(error(format!("`shed-plus` has no parameter `{name}`"))),
        }
        Ok(())
    }
}

fn number(name: &str, value: &str, low: f64, high: f64) -> Result<f64, ParsePolicyError> {
    let parsed = value.parse::<f64>().ok();
    parsed
        .filter(|number| (low..=high).contains(number))
        .ok_or_else(|| error(format!("{name}={value} is not from {low} to {high}")))
}

fn whole(name: &str, value: &str, high: f64) -> Result<f64, ParsePolicyError> {
    let number = number(name, value, 0.0, high)?;
    if number.fract() == 0.0 {
        Ok(number)
    } else {
        Err(error(format!("{name}={value} is no whole number")))
    }
}

impl fmt::Display for Speculation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HadoopNs => f.write_str("hadoop-ns"),
            Self::ShedPlus(plus) => {
                let ShedPlus {
                    xi,
                    theta,
                    max_clones,
                    miss_target,
                    mode,
                    launch_overhead,
                    min_interval,
                } = plus;
                write!(
                    f,
                    "shed-plus{{xi={xi},theta={theta},max_clones={max_clones},miss_target={miss_target},mode={},\
                     launch_overhead={},min_interval={}}}",
                    mode.label(),
                    launch_overhead.seconds(),
                    min_interval.seconds()
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_without_parameters_has_the_papers_defaults() {
        let policy: Speculation = "shed-plus".parse().unwrap();
        assert_eq!(policy, Speculation::ShedPlus(ShedPlus::default()));
        assert_eq!(policy, Policy::default().speculation);
        assert_eq!("shed-plus{}".parse(), Ok(policy));
        assert_eq!("hadoop-ns".parse(), Ok(Speculation::HadoopNs));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "hadoop-ns",
            "shed-plus{xi=0.25,theta=0.01,max_clones=3,miss_target=0.05,mode=marginal,launch_overhead=1.5,\
             min_interval=2}",
        ] {
            let policy: Speculation = text.parse().unwrap();
            assert_eq!(policy.to_string(), text);
        }
    }

    #[test]
    fn an_error_names_the_fault_and_lists_what_is_valid() {
        for (text, fault) in [
            ("late", "`late` is no policy"),
            ("shed-plus{xi=2}", "xi=2 is not from 0 to 1"),
            ("shed-plus{xi=NaN}", "xi=NaN is not from 0 to 1"),
            ("shed-plus{max_clones=1.5}", "no whole number"),
            ("shed-plus{mode=best}", "`best` is no mode"),
            ("shed-plus{kappa=1}", "no parameter `kappa`"),
            ("shed-plus{xi}", "`xi` is not name=value"),
            ("shed-plus{xi=0.1", "lacks its `}`"),
            ("shed-plus{xi=0.1,xi=0.2}", "`xi` is given twice"),
            ("hadoop-ns{xi=0.1}", "has no parameter"),
        ] {
            let message = text.parse::<Speculation>().unwrap_err().to_string();
            assert!(message.contains(fault), "{message}");
            assert!(message.contains("mode (paper, guarded"), "{message}");
        }
    }

    #[test]
    fn an_order_is_read_by_its_label() {
        for order in Order::ALL {
            assert_eq!(order.label().parse(), Ok(order));
        }
        let message = "lifo".parse::<Order>().unwrap_err().to_string();
        assert_eq!(message, "`lifo` is no order: use lst, edf or fifo");
    }
}
