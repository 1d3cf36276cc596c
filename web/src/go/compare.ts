// Made by "make docs" from the types of internal/report/compare.
import type { Unit } from './metric'

/**
 * CPU is the CPU usage of the data nodes by second: in percent of the quota if every node has one,
 * else in cores.
 */
export interface CPU {
  /** "%" or "cores" */
  unit: string
  a: CPUSide
  b: CPUSide
  /**
   * g_of_seconds is the uncorrected effect size over seconds, as the original papers compute it.
   * Seconds are not independent, so it has no interval and no test.
   */
  g_of_seconds?: number
}

/** CPUSide is the distribution of one side. */
export interface CPUSide {
  /** mean, SD and Variance are over all seconds of all data nodes. */
  mean: number
  sd: number
  variance: number
  /**
   * curve is the mean over nodes and repetitions by second. CDF is the share of seconds (y) with
   * at most this usage (x).
   */
  curve: Point[]
  cdf: Point[]
}

/** LinkFigure is the mean over one side's trials of the measurements of a link. */
export interface LinkFigure {
  /** real marks a link without emulation. SetMS is the configured round trip of an emulated link. */
  real?: boolean
  set_rtt_ms?: number
  /**
   * rtt_ms is the median round trip: of a real link during the measurement, of an emulated link
   * before it.
   */
  rtt_ms: number
  /** rtt_p99_ms is of the same probes. Loss is the share of lost probes, of real links only. */
  rtt_p99_ms: number
  loss?: number
}

/** LinkPair is a link of both sides. */
export interface LinkPair {
  from: string
  to: string
  a: LinkFigure
  b: LinkFigure
  /** ratio is B's round trip divided by A's, 0 if either is unknown. */
  ratio?: number
}

/** Metric is one metric of both sides. */
export interface Metric {
  name: string
  unit: Unit
  /**
   * leading metrics are shown by default. SameAs names a metric with identical values that
   * represents this one.
   */
  leading?: boolean
  same_as?: string
  a: SideFigures
  b: SideFigures
  /** change is B's mean divided by A's, minus 1; nil if A's is 0. */
  change?: number
  /**
   * difference is B's mean minus A's. DifferenceCI95 is the half-width of its 95 % interval
   * (Welch), nil if either side has one repetition.
   */
  difference: number
  difference_ci95?: number
  /**
   * hedges_g has the small-sample correction. GUncorrected is (B - A) / sqrt((SD_A^2 + SD_B^2) /
   * 2), as in the original papers.
   */
  hedges_g?: number
  g_uncorrected?: number
  /** p is the result of the permutation test. Exact is set if all permutations were enumerated. */
  p?: number
  p_exact?: boolean
  /** least_p is the smallest p value that the number of repetitions allows. */
  least_p?: number
  /** sentence describes the result. */
  sentence: string
}

/** Pair is a comparison of two cells. */
export interface Pair {
  a: Side
  b: Side
  metrics: Metric[]
  /** censored describes metrics for which some repetitions only have a lower bound. */
  censored?: string[]
  /** links are the links of both sides, empty if all are emulated. */
  links?: LinkPair[]
  /** cpu is the CPU usage of data nodes, nil if either side recorded none. */
  cpu?: CPU
}

/** Point is a point of a curve. */
export interface Point {
  x: number
  y: number
}

/** Report holds all compared pairs of cells. */
export interface Report {
  schema: string
  /** seed is the seed of the permutation tests. */
  seed: number
  pairs: Pair[]
  /** notes list omitted cells and differences in machines and settings. */
  notes?: string[]
}

/** Side is one cell of a run. */
export interface Side {
  /** the directory's name */
  run: string
  /** from 1, as in the run's plan */
  cell: number
  parameters: Record<string, unknown>
  /** trials are the IDs of the repetitions behind the figures. */
  trials: number[]
  /** suspect is set if no repetition was valid and the suspect ones are used. */
  suspect?: boolean
}

/** SideFigures are the repetitions of one side. */
export interface SideFigures {
  n: number
  mean: number
  /** sd and Variance are nil for one repetition. */
  sd?: number
  variance?: number
  /** ci95 is the half-width of the 95 % interval of the mean, nil for one repetition. */
  ci95?: number
  values: number[]
}
