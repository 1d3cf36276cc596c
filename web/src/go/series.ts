// Made by "make docs" from the types of internal/report/series.
import type { Effect } from './record'

/**
 * Band is an event as a stretch of the timeline: where it was in force, or while its change
 * settled. To is null where it lasted to the end.
 */
export interface Band {
  name: string
  kind: string
  text: string
  from: number
  to?: number
  /** effect is on Targets; absent for notes: of the links' scale, a drift. */
  effect?: Effect
  targets?: string[]
  /**
   * reverts says that this is the change that took a settled event back, whose effect is
   * the opposite.
   */
  reverts?: boolean
  state?: string
  error?: string
  late_ms?: number
  /** accepted_s and CompleteS count from From; Moved is in bytes. */
  accepted_s?: number
  complete_s?: number
  moved?: number
}

/**
 * Curve is a distribution: Tail[i] of the operations, a share of 0 to 1, took longer than
 * US[i] microseconds.
 */
export interface Curve {
  operation: string
  /** service or response */
  clock: string
  count: number
  tail: number[]
  us: number[]
}

/**
 * Heat counts operations by time and latency: Counts[i][j] began in bin i and took from
 * Edges[j] to Edges[j+1] microseconds.
 */
export interface Heat {
  clock: string
  bin_s: number
  t: number[]
  edges: number[]
  counts: number[][]
}

/** Network is what packets met between nodes where an overlay routes. */
export interface Network {
  bin_s: number
  t: number[]
  mean_ms: number[]
  worst_ms: number[]
  unreachable: number[]
}

/** NodeUse is one node's series: cores, bytes, and bytes a second. */
export interface NodeUse {
  cpu: number[]
  memory: number[]
  read: number[]
  wrote: number[]
  rx: number[]
  tx: number[]
}

/** Nodes is what nodes used, means over a bin; a series a node. */
export interface Nodes {
  bin_s: number
  t: number[]
  names: string[]
  /** as Names */
  series: NodeUse[]
  hidden?: number
}

/**
 * Operations has percentiles of the response time of each kind of operation over time, in
 * microseconds: the highest of a bin's seconds, 0 where none ended ok.
 */
export interface Operations {
  bin_s: number
  t: number[]
  names: string[]
  /** as Names */
  p95: number[][]
  p99: number[][]
}

/**
 * Probes are the short jobs beside the workload: when each began, and the 95th percentile of
 * its operations by kind, in microseconds, 0 where none ended ok.
 */
export interface Probes {
  t: number[]
  names: string[]
  /** as Names */
  p95: number[][]
  /** jobs that could not be driven */
  failed?: number
}

/** Rates are several rates beside each other over time, operations a second. */
export interface Rates {
  bin_s: number
  t: number[]
  names: string[]
  /** as Names */
  rate: number[][]
}

/**
 * Timeline is what the driver saw. Rates are means over a bin, latencies the highest of a
 * bin's seconds, in microseconds: percentiles are never averaged.
 */
export interface Timeline {
  /** seconds in a bin */
  bin_s: number
  /** begin of each bin, in seconds since the measurement began */
  t: number[]
  /** operations a second */
  ok: number[]
  failed: number[]
  unknown: number[]
  dropped: number[]
  service_p50: number[]
  service_p99: number[]
  service_p999: number[]
  response_p50: number[]
  response_p99: number[]
  response_p999: number[]
  in_flight: number[]
}
