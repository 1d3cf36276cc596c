// Made by "make docs" from the types of internal/report/compare.
import type { Unit } from './metric'

/**
 * CPU is how busy the data nodes were, second by second. Where every node has a quota it is
 * in percent of that, as monitors of virtual machines tell it, else in cores.
 */
export interface CPU {
  /** "%" or "cores" */
  unit: string
  a: CPUSide
  b: CPUSide
  /**
   * g_of_seconds is what the documents compute: the uncorrected effect size over seconds of
   * nodes as if they were independent. They are not, so it has no interval and no test.
   */
  g_of_seconds?: number
}

/** CPUSide is one side's distribution. */
export interface CPUSide {
  /** mean, SD and Variance are over all seconds of all data nodes. */
  mean: number
  sd: number
  variance: number
  /**
   * curve is the mean over nodes and repetitions at each second, CDF the share of
   * seconds (y) that were at most so busy (x).
   */
  curve: Point[]
  cdf: Point[]
}

/** Figures are one side of a metric, over its repetitions. */
export interface Figures {
  n: number
  mean: number
  /** sd and Variance are nil for one repetition. */
  sd?: number
  variance?: number
  /** ci95 is the half-width of the 95 % interval of the mean; nil for one repetition. */
  ci95?: number
  values: number[]
}

/** LinkFigure is what one side's trials have measured of a link, on average. */
export interface LinkFigure {
  /** real says that the link was left as it is; else SetMS is the round trip that was asked for. */
  real?: boolean
  set_rtt_ms?: number
  /** rtt_ms is the median round trip: of a real link while trials measured, else of the echoes before. */
  rtt_ms: number
  /** rtt_p99_ms is of the same echoes; Loss, of real links alone, the share that was lost. */
  rtt_p99_ms: number
  loss?: number
}

/** LinkPair is a link of both sides. */
export interface LinkPair {
  from: string
  to: string
  a: LinkFigure
  b: LinkFigure
  /** ratio is B's round trip over A's, 0 where either is not known. */
  ratio?: number
}

/** Metric is one figure of both sides. */
export interface Metric {
  name: string
  unit: Unit
  /**
   * leading are those that tables show unless all are asked for; SameAs is the metric that has
   * the same values under another name, which stands for both.
   */
  leading?: boolean
  same_as?: string
  a: Figures
  b: Figures
  /** change is B's mean over A's, less 1; nil where A's is 0. */
  change?: number
  /**
   * difference is B's mean less A's, with the half-width of its 95 % interval (Welch);
   * nil where either side has one repetition.
   */
  difference: number
  difference_ci95?: number
  /**
   * hedges_g has the small-sample correction, GUncorrected is the documents' form:
   * (B - A) / sqrt((SD_A^2 + SD_B^2) / 2).
   */
  hedges_g?: number
  g_uncorrected?: number
  /** p is the permutation test's; Exact says that all deals were looked at. */
  p?: number
  p_exact?: boolean
  /** least_p is the smallest that so many repetitions can give. */
  least_p?: number
  /** sentence says it in words. */
  sentence: string
}

/** Pair is two cells, A and B. */
export interface Pair {
  a: Side
  b: Side
  metrics: Metric[]
  /** censored tells of figures that some repetitions know to be at least so much, and no more. */
  censored?: string[]
  /** links are those of both sides, where some are real on either. */
  links?: LinkPair[]
  /** cpu of the data nodes; nil where either side recorded none. */
  cpu?: CPU
}

/** Point of a curve. */
export interface Point {
  x: number
  y: number
}

/** Report is every pair of cells that was compared. */
export interface Report {
  schema: string
  /** seed of the permutation tests. */
  seed: number
  pairs: Pair[]
  /** notes tell what was left out. */
  notes?: string[]
}

/** Side is one cell of a run. */
export interface Side {
  /** the directory's name */
  run: string
  /** from 1, as in the run's plan */
  cell: number
  parameters: Record<string, unknown>
  /** trials are the IDs of the repetitions that figures are made of. */
  trials: number[]
  /** suspect says that no repetition was valid and that these are the suspect ones. */
  suspect?: boolean
}
