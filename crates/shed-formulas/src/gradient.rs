//! SCA/ESE's own solver of P2: gradient projection on the multipliers, as printed except for the
//! additions that make it terminate.

use shed_papers::formulas::sca::{CloneJob, P2};

/// How the solver steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steps {
    /// η₁, η₂, η₃: of the machines' price, of the upper and of the lower bound of copies.
    pub eta: [f64; 3],
    /// Divisor of the machines' residual Σmc − N. It is 1 as printed, which oscillates without end
    /// on the data of Figure 1; N makes it converge.
    pub scale: f64,
    /// It ends when no number moves by this or more.
    pub epsilon: f64,
    /// It gives up after this many steps.
    pub limit: u32,
}

impl Default for Steps {
    /// Figure 1's steps with the printed residual.
    fn default() -> Self {
        Self {
            eta: [0.2, 0.3, 0.4],
            scale: 1.0,
            epsilon: 1e-6,
            limit: 20_000,
        }
    }
}

/// The copies and multipliers after a step.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// c, copies of each task, per job.
    pub copies: Vec<f64>,
    /// ν, the price of a machine.
    pub price: f64,
    /// ξ, per job the multiplier of c ≤ r.
    pub upper: Vec<f64>,
    /// h, per job the multiplier of c ≥ 1.
    pub lower: Vec<f64>,
}

impl Point {
    /// One copy each, multipliers 0.1.
    fn start(jobs: usize) -> Self {
        Self {
            copies: vec![1.0; jobs],
            price: 0.1,
            upper: vec![0.1; jobs],
            lower: vec![0.1; jobs],
        }
    }

    /// The copies that maximize the Lagrangian within \[1, r\] (as printed without bounds it may
    /// have no maximum), then the multipliers along their residuals.
    fn next(&self, jobs: &[CloneJob], p2: &P2, steps: &Steps) -> Self {
        let most = f64::from(p2.copies_max);
        let [eta_price, eta_upper, eta_lower] = steps.eta;
        let mut next = self.clone();
        let mut used = 0.0;
        for (position, job) in jobs.iter().enumerate() {
            let tasks = f64::from(job.tasks);
            let (upper, lower) = (self.upper[position], self.lower[position]);
            let price = self.price * tasks + upper - lower;
            let copies = job.best_copies(p2.gamma, price, most);
            used += tasks * copies;
            next.copies[position] = copies;
            next.upper[position] = (upper + eta_upper * (copies - most)).max(0.0);
            next.lower[position] = (lower + eta_lower * (1.0 - copies)).max(0.0);
        }
        let residual = (used - p2.machines as f64) / steps.scale;
        next.price = (self.price + eta_price * residual).max(0.0);
        next
    }

    fn numbers(&self) -> impl Iterator<Item = &f64> {
        let vectors = [&self.copies, &self.upper, &self.lower];
        vectors.into_iter().flatten().chain([&self.price])
    }

    fn is_near(&self, other: &Self, epsilon: f64) -> bool {
        let mut pairs = self.numbers().zip(other.numbers());
        pairs.all(|(a, b)| (a - b).abs() < epsilon)
    }
}

/// A run of the solver.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The point after each step.
    pub points: Vec<Point>,
    /// Whether the last step moved nothing, so that its copies are the solution.
    pub converged: bool,
}

/// Steps until nothing moves, or the limit.
pub fn gradient_projection(jobs: &[CloneJob], p2: &P2, steps: &Steps) -> Run {
    let mut points = Vec::new();
    let mut point = Point::start(jobs.len());
    for _ in 0..steps.limit {
        let next = point.next(jobs, p2, steps);
        let converged = next.is_near(&point, steps.epsilon);
        points.push(next.clone());
        if converged {
            return Run { points, converged };
        }
        point = next;
    }
    Run {
        points,
        converged: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shed_core::estimate::pareto::ParetoDistribution;
    use shed_papers::formulas::sca::solve_relaxed;

    #[test]
    fn the_residual_per_machine_leads_to_the_optimum_of_figure_1() {
        let data = [(10, 1.0), (20, 2.0), (5, 1.0), (10, 2.0)];
        let jobs: Vec<CloneJob> = (0..)
            .zip(data)
            .map(|(id, (tasks, t_min))| CloneJob {
                id,
                tasks,
                distribution: ParetoDistribution { t_min, beta: 2.0 },
            })
            .collect();
        let p2 = P2 {
            gamma: 0.05,
            machines: 100,
            copies_max: 8,
        };
        let optimum = solve_relaxed(&jobs, &p2).unwrap();
        let scaled = Steps {
            scale: 100.0,
            ..Steps::default()
        };
        let run = gradient_projection(&jobs, &p2, &scaled);
        let last = run.points.last().unwrap();
        assert!(run.converged);
        for (found, best) in last.copies.iter().zip(&optimum.copies) {
            assert!((found - best).abs() < 1e-4);
        }
        assert!(!gradient_projection(&jobs, &p2, &Steps::default()).converged);
    }
}
